//! The journal in tables of its own, one for each day.

mod copy;
mod days;
mod query;
mod queue;
mod writer;

pub(super) use query::find;
pub(super) use queue::Journal;
pub(super) use writer::write;

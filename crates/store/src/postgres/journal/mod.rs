//! The journal, in tables of its own, one for each day.

mod partitions;
mod query;
mod queue;
mod rows;
mod writer;

pub(super) use query::find;
pub(super) use queue::Journal;
pub(super) use writer::write;

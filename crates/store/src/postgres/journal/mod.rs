//! The journal in tables of its own, one for each day.

mod days;
mod query;
mod writer;

pub(super) use query::find;
pub(super) use writer::{Journal, write};

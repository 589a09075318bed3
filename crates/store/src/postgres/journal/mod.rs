//! The journal, which has one table per day. `partitions` drops tables that are too old.

mod partitions;
mod query;
mod queue;
mod rows;
mod search;
mod usage;
mod writer;

pub(super) use partitions::make_days;
pub(super) use queue::Journal;
pub(super) use search::{find, page};
pub(super) use usage::usage;
pub(super) use writer::write;

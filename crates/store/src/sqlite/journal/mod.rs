//! The journal, in a file of its own, so that its writes neither wait for the ledger's lock nor look like
//! another process to the ledger's writer. `writer` deletes rows that are too old (`prune`), some at a time.

mod names;
mod query;
mod rows;
mod search;
mod usage;
mod writer;

pub(super) use names::Names;
pub(super) use search::{find, page};
pub(super) use usage::{add_pending as add_pending_usage, usage};
pub(super) use writer::{Journal, JournalOptions};

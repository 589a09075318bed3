//! The journal, in a file of its own, so that its writes neither wait for the ledger's lock nor look like
//! another process to the ledger's writer.

mod names;
mod query;
mod rows;
mod search;
mod usage;
mod writer;

pub(super) use search::{find, page};
pub(super) use usage::usage;
pub(super) use writer::{Journal, JournalOptions};

//! The journal, in a file of its own, so that its writes neither wait for the ledger's lock nor look like
//! another process to the ledger's writer.

mod names;
mod query;
mod rows;
mod writer;

pub(super) use query::find;
pub(super) use writer::{Journal, JournalOptions};

//! The journal in a file of its own, so that its writes neither wait for the ledger's lock nor look to
//! the ledger's writer like another process.

mod names;
mod query;
mod rows;
mod writer;

pub(super) use query::find;
pub(super) use writer::{Journal, JournalOptions};

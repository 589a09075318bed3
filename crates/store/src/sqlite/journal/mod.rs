//! The journal. It has a file of its own. So its writes do not wait for the ledger's lock, and the ledger's writer does
//! not mistake them for writes of another process. `writer` deletes old rows in small steps (`prune`).

mod names;
mod query;
mod rows;
mod search;
mod usage;
mod usage_report;
mod writer;

pub(super) use names::Names;
pub(super) use search::{find, page};
pub(super) use usage::add_pending as add_pending_usage;
pub(super) use usage_report::usage;
pub(super) use writer::{Journal, JournalOptions};

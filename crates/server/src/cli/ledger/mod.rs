//! `tollgate ledger …`: verifies, reports and reprices the ledger.

mod command;
mod entry_range;
mod heads;
mod report;
mod reprice;
mod verify;

pub(super) use command::{Ledger, run};
pub(super) use verify::{differences_json, differences_table};

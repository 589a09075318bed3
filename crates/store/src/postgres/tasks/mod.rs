//! Tasks have their own connections, because thousands of polls must not delay the ledger's lanes.
//!
//! A step that moves money is a transaction that locks the wallet first (`transactions`). Any other step is one
//! statement, conditional on the claim's fence (`updates`). Leases are measured by the database's clock.

mod lookups;
mod runner;
mod transactions;
mod updates;

pub(super) use lookups::{channels, find, list};
pub(super) use runner::{TASK_CONNECTIONS, Tasks, answer};
pub(super) use updates::{execute, ms, query, void_claims};

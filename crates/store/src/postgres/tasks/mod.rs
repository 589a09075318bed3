//! Tasks, on connections of their own: polls by the thousand must not hold up the ledger's lanes.
//!
//! A step that moves money is a transaction that locks the wallet first (`transactions`); any other is one statement
//! that names the claim's fence (`steps`). Leases are time of the database's clock.

mod lookups;
mod runner;
mod transactions;
mod updates;

pub(super) use lookups::{channels, find, list};
pub(super) use runner::{TASK_CONNECTIONS, Tasks};
pub(super) use updates::void_claims;

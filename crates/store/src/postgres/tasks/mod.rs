//! Stores and reads tasks and callbacks. Changes run on connections of their own, so that thousands of polls do not
//! delay the lanes.
//!
//! A step that moves money is a transaction that locks the wallet first (`transactions`). Every other step is one
//! statement (`updates`). A step that names a claim takes effect only if the claim is still held. Leases are measured
//! by the database's clock.

mod lookups;
mod runner;
mod transactions;
mod updates;

pub(super) use lookups::{backlog, channels, find, list};
pub(super) use runner::{TASK_CONNECTIONS, Tasks, answer};
pub(super) use updates::{execute, ms, query, void_claims};

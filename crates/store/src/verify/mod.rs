//! `ledger verify`: compares the entries with the stored balances, heads and totals (V1 to V10 of
//! `docs/invariants.md`).
//!
//! The check works on given rows and uses no database. A store reads the rows in one snapshot.

mod check;
mod finish;
mod points;
mod report;
mod sums;
mod tasks;

pub(crate) use check::Check;
pub use report::{Difference, Rule, VerifyReport};
pub(crate) use sums::{HoldFound, KeyFound, WalletFound};
pub(crate) use tasks::INCOMPLETE_TASKS;

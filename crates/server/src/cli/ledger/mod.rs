//! `tollgate ledger …`: reports, and proof that the books are right.

mod command;
mod heads;
mod report;
mod reprice;
mod span;
mod verify;

pub(super) use command::{Ledger, run};

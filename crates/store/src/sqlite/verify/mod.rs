//! `ledger verify`: what the entries say against what is stored (reliability 1.3).

mod check;
mod sums;

pub(super) use check::verify;

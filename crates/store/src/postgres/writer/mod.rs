//! The ledger writer.

pub(super) mod changes;
pub(super) mod commit_proof;
pub(super) mod key_numbers;
pub(super) mod key_wallets;
pub(super) mod lane;
pub(super) mod lost_commit;
pub(super) mod probe;
pub(super) mod statements;
pub(super) mod transaction;
pub(super) mod worker;
pub(super) mod write;

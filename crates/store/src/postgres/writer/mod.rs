//! The ledger writer: lanes that decide commands and write them in transactions.

mod access;
mod alert_rules;
mod apply;
mod audit;
mod batch_columns;
mod catalog;
mod change_lock;
pub(super) mod changes;
mod commit;
pub(super) mod commit_proof;
mod import;
mod key_changes;
pub(super) mod key_numbers;
pub(super) mod key_wallets;
pub(super) mod lane;
mod lane_loop;
pub(super) mod lost_commit;
mod one_by_one;
mod parked;
pub(super) mod probe;
pub(super) mod statements;
pub(super) mod thread;
pub(super) mod transaction;
mod wallet_changes;
pub(super) mod worker;

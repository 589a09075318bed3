//! Decisions on money, shared by all databases: rows in memory, the commands that change them, and the changes to
//! write.
//!
//! A store loads the rows of a batch, runs its commands here, and writes the pending changes. This module uses neither
//! a database nor a clock.

mod access;
mod alerts;
mod audit;
mod calls;
mod changes;
mod failed_batch;
mod import;
mod manual;
mod manual_entry;
mod pending;
mod pending_write;
mod rows;
mod state;
mod wallet_changes;

pub(crate) use access::{checked_code, checked_token, no_token};
pub(crate) use alerts::{checked_rule, no_rule, no_wallet_of_rule};
pub(crate) use audit::NewAuditRow;
pub(crate) use calls::Closed;
pub(crate) use changes::{EditedKey, edited_key, new_key};
pub(crate) use failed_batch::FailedBatch;
pub(crate) use manual::{FoundEntry, ManualFacts};
pub(crate) use pending::Posting;
pub(crate) use pending_write::PendingWrite;
pub(crate) use rows::{BookKey, BookWallet, HoldRow, OpenHold};
pub(crate) use state::{Books, Limits};
pub(crate) use wallet_changes::{WalletDecision, WalletOpening};

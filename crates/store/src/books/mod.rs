//! Decisions on money, the same for every database: rows in memory, commands run on them, and
//! what is then to be written.
//!
//! A store brings the rows of a batch in, runs its commands here, and writes what is pending. No
//! database is known here, and no clock.

mod calls;
mod changes;
mod failed_batch;
mod pending;
mod pending_write;
mod rows;
mod state;

pub(crate) use calls::Closed;
pub(crate) use changes::{Opening, changed, edited, new_key};
pub(crate) use failed_batch::FailedBatch;
pub(crate) use pending::Posting;
pub(crate) use pending_write::PendingWrite;
pub(crate) use rows::{BookKey, BookWallet, HoldRow, OpenHold};
pub(crate) use state::{Books, Limits};

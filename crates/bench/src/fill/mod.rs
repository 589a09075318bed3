//! Fills a store as a busy gateway would have after some months: wallets, keys, entries, tasks, audit and calls.

mod accounts;
mod calls;
mod command;
mod random;

pub(crate) use accounts::Accounts;
pub(crate) use calls::{MODELS, request_id};
pub(crate) use command::{Args, Place, Size, fill, run};

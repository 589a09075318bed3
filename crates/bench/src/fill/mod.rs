//! Fills a store with the data of a busy gateway after some months: wallets, keys, entries, tasks, audit and calls.

mod accounts;
mod calls;
mod command;
mod random;

pub(crate) use accounts::Accounts;
pub(crate) use calls::{MODELS, request_id};
pub(crate) use command::{Args, Place, Size, fill, run};

//! The parts that all commands share: tables, JSON, times and errors.

mod error;
mod output;
mod store_retry;
mod table;
pub(super) mod time;

pub(super) use error::{CommandError, with_sources};
pub(super) use output::Output;
pub(super) use store_retry::StoreRetry;
pub(super) use table::{Side, Table};
pub(super) use time::TimeArg;

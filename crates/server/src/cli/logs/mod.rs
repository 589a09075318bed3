//! `tollgate logs …`: shows the journal of calls.

mod command;
mod explain;

pub(super) use command::{Logs, run};

//! `tollgate import`: imports accounts, channels and models of other gateways.

mod command;
mod report;

pub(super) use command::{Import, run};

//! Times the reads of the admin API on a filled store, and measures how much these reads slow down calls.

mod command;
mod requests;
mod slowdown;
mod timing;

pub(crate) use command::{Args, run};

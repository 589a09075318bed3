//! Times every read of the admin API on a filled store, and how much slower calls get while such reads run.

mod beside;
mod command;
mod requests;
mod timing;

pub(crate) use command::{Args, run};

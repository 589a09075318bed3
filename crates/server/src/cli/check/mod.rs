//! `tollgate check`: checks a configuration, and with `--live` its upstreams and stores.

mod command;
mod live;

pub(super) use command::{Check, run};

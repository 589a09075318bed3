//! `tollgate init`: creates a configuration from the keys in the environment, with a wallet and a first call.
//!
//! `command.rs` asks the user, `vendors.rs` looks for keys, `file.rs` writes the configuration, and `staging.rs` makes
//! all files appear together or not at all.

mod command;
mod file;
mod staging;
mod vendors;

pub(super) use command::{Init, run};

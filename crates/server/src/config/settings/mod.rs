//! The tables of single settings, one file each: names, defaults, how they are read.
//!
//! Defaults come from `Default`; `read` overwrites what the file states. `config/example.toml`
//! shows every one of them, and a test keeps it equal to these files.

mod admin;
mod journal;
mod ledger;
mod limits;
mod media;
mod outbound;
mod server;
mod store;
mod tasks;
mod timeouts;

pub use admin::Admin;
pub use journal::Journal;
pub use ledger::Ledger;
pub use limits::Limits;
pub use media::{Media, MediaPlace};
pub use outbound::Outbound;
pub use server::Server;
pub use store::{Store, StoreUrl};
pub use tasks::Tasks;
pub use timeouts::Timeouts;

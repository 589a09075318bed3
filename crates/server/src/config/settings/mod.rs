//! The tables of single settings, one file each.
//!
//! A setting is declared once, with its key, default, bound and comment. The reader, the defaults
//! and the first part of `config/example.toml` come from the declaration.

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

pub use admin::{Admin, KeptIn};
pub use journal::Journal;
pub use ledger::Ledger;
pub use limits::Limits;
pub use media::{Media, MediaPlace};
pub use outbound::Outbound;
pub use server::Server;
pub use store::{Store, StoreUrl};
pub use tasks::Tasks;
pub use timeouts::Timeouts;

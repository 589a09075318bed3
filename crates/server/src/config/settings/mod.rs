//! The tables of single settings, one file for each.
//!
//! A setting is declared once, with its key, default, bounds and comment. The reader, the defaults and the first part
//! of `config/example.toml` are derived from the declaration.

mod admin;
mod alerts;
mod catalog;
mod journal;
mod ledger;
mod limits;
mod log;
mod media;
mod outbound;
mod server;
mod store;
mod tasks;
mod telemetry;
mod timeouts;

pub use admin::{Admin, CatalogLocation};
pub use alerts::Alerts;
pub use catalog::Catalog;
pub use journal::Journal;
pub use ledger::Ledger;
pub use limits::Limits;
pub use log::{LogFormat, LogOutput};
pub use media::{Media, MediaPlace};
pub use outbound::Outbound;
pub use server::Server;
pub use store::{Store, StoreUrl};
pub use tasks::Tasks;
pub use telemetry::Telemetry;
pub(super) use telemetry::read_headers;
pub use timeouts::Timeouts;

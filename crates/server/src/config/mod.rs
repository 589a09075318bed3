//! Reads the configuration file into settings, channels and models, and reports its problems.
//!
//! [`Config::load`] reads a file into typed settings, or reports every problem at once. [`resolve`] looks up the
//! secrets, and returns the channels and models that can be used now.
//!
//! Start reading in `load.rs`. `settings/` has one file for each table of single settings. `catalog/` reads channels
//! and models. `document/` reads TOML and reports problems. `entries/` changes channels and models for the admin API
//! and the command line.

mod admin_token;
mod catalog;
mod crate_settings;
mod document;
mod entries;
mod load;
mod settings;

#[cfg(test)]
mod tests;

pub use admin_token::AdminToken;
pub use catalog::{
    AccountSettings, AccountValue, Channel, Model, ModelChoice, Plan, Source, Sources, resolve,
};
pub(crate) use catalog::{DISABLED, is_reachable, pinned_dialect, protocols_for};
pub(crate) use document::on_one_line;
pub use document::{FilePosition, Problem, SecretSource, Tls};
pub(crate) use entries::{
    BadCredential, CredentialPolicy, Entries, EntriesError, FileDraft, PastedSecrets,
    read_if_exists, remove_unused,
};
pub use load::{Config, load_storage_settings, load_store_settings};
pub use settings::{
    Admin, Alerts, Catalog, CatalogLocation, Journal, Ledger, Limits, LogFormat, LogOutput, Media,
    MediaPlace, Outbound, Server, Store, StoreUrl, Tasks, Telemetry, Timeouts,
};

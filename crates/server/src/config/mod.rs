//! The configuration file: its settings, the problems in it, and the catalog it makes.
//!
//! [`Config::load`] reads a file into typed settings or reports every problem at once;
//! [`resolve`] looks up the secrets and returns the channels and models that can be used
//! now. Start reading in `load.rs`. `settings/` has one file for each table of single settings,
//! `catalog/` reads channels and models, `document/` reads TOML and reports problems.

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
pub(crate) use catalog::protocols_for;
pub use catalog::{Channel, Model, Plan, resolve};
pub use document::{Place, Problem, SecretSource};
pub(crate) use entries::{
    BadCredential, Entries, EntriesError, PastedSecrets, read_if_exists, remove_unused,
    replace_file,
};
pub use load::{Config, load_store_settings};
pub use settings::{
    Admin, Journal, KeptIn, Ledger, Limits, Media, MediaPlace, Outbound, Server, Store, StoreUrl,
    Tasks, Timeouts,
};

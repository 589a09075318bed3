//! The configuration file: what it may say, what is wrong with it, what it comes to.
//!
//! [`Config::load`] reads a file into typed settings or reports every problem at once;
//! [`resolve`] looks up the secrets and answers with the channels and models that can be used
//! now. Start reading in `load.rs`; `settings/` has one file for each table of single settings.

mod bound;
mod channel;
mod fit;
mod load;
mod model;
mod nearest;
mod network;
mod parts;
mod plan;
mod price;
mod problem;
mod profile;
mod secret;
mod settings;
mod token;
mod tree;
mod value;

#[cfg(test)]
mod example;
#[cfg(test)]
mod tests;

pub use channel::Channel;
pub use load::{Config, load_store_settings};
pub use model::Model;
pub use plan::{Plan, resolve};
pub use problem::{Place, Problem};
pub use secret::SecretSource;
pub use settings::{
    Admin, Journal, Ledger, Limits, Media, MediaPlace, Outbound, Server, Store, StoreUrl, Tasks,
    Timeouts,
};
pub use token::AdminToken;

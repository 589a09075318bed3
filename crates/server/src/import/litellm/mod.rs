//! Reads the `LiteLLM` proxy: its configuration file, its database, or both.

mod accounts;
mod allowed_models;
mod budget;
mod config;
mod database;
mod models;
mod read;
mod sealed;
mod yaml;

pub(crate) use accounts::{BudgetsAs, Choices};
pub(crate) use read::read;

/// The name of the other system in references and reports.
pub(crate) const SYSTEM: &str = "litellm";

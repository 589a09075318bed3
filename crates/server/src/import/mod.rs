//! Imports accounts from other gateways: wallets, keys, balances and limits into the store, channels and models into a
//! file for review (`docs/moving.md`).
//!
//! A reader (`new_api`, `litellm`, `openrouter`) produces an [`ImportPlan`], which does not depend on a database.
//! `apply` compares the plan with the store and creates the missing accounts, and `outcome` adds up the results.

mod apply;
mod draft;
mod exact;
mod hex;
pub(crate) mod litellm;
pub(crate) mod new_api;
pub(crate) mod openrouter;
mod outcome;
mod plan;
mod secrets_file;

pub(crate) use apply::{compare, create};
pub(crate) use outcome::{AccountCounts, ImportSums, Outcome};
pub(crate) use plan::{ImportPlan, Leftover, SumKind};
pub(crate) use secrets_file::SecretsFile;

//! The resources of the admin listener, one file each.

pub(crate) mod alerts;
pub(crate) mod attention;
pub(crate) mod audit;
pub(crate) mod calls;
pub(crate) mod channels;
pub(crate) mod config;
pub(crate) mod entries;
pub(crate) mod events;
mod filter;
pub(crate) mod health;
pub(crate) mod keys;
pub(crate) mod models;
pub(crate) mod play;
pub(crate) mod presets;
pub(crate) mod proposed_channels;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod statement;
pub(crate) mod tasks;
pub(crate) mod tokens;
pub(crate) mod usage;
pub(crate) mod wallets;

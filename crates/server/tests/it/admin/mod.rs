//! The admin API, by its own tokens.

mod access;
mod audit;
mod calls;
mod client;
mod config;
mod events;
mod every_operation;
mod keys;
mod play;
mod session;
mod tasks;
mod tokens;
mod usage;
mod wallets;

pub(crate) use client::{Admin, assert_refused, with_token};

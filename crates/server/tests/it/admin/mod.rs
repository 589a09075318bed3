//! Tests of the admin API and its access control.

mod access;
mod alerts;
mod audit;
mod calls;
mod client;
mod config;
mod console;
mod edge_cases;
mod events;
mod every_change;
mod every_operation;
mod keys;
mod playground;
mod playground_sessions;
mod proposed_channels;
mod session;
mod several_nodes;
mod tasks;
mod tokens;
mod usage;
mod wallets;

pub(crate) use client::{AdminClient, TOKEN, assert_refused, with_token};

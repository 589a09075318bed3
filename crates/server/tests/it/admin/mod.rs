//! The admin API, by its own tokens.

mod access;
mod audit;
mod client;
mod every_operation;
mod keys;
mod session;
mod tokens;

pub(crate) use client::{Admin, assert_refused, with_token};

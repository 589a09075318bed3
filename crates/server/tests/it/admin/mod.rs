//! The admin API, by its own tokens.

mod access;
mod audit;
mod client;
mod keys;

pub(crate) use client::{Admin, assert_refused, with_token};

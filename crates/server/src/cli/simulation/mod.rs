//! `tollgate demo` and `tollgate sim`: the commands that run the simulated upstreams.

mod book_day;
mod customers;
pub(super) mod demo;
mod demo_config;
mod fetch;
mod past_day;
pub(super) mod sim;
mod traffic;

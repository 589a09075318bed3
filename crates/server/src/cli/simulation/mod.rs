//! `tollgate demo` and `tollgate sim`: the commands that run the simulated upstreams.

mod customers;
pub(super) mod demo;
mod fetch;
mod past_day;
pub(super) mod sim;
mod traffic;

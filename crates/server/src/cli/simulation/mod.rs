//! `tollgate demo` and `tollgate sim`: the commands that run the simulated upstreams.

pub(super) mod demo;
mod fetch;
pub(super) mod sim;

//! The operators' listener: health, readiness and metrics.
//!
//! It is never the public one. What stands here needs no token and holds no secret; everything
//! behind the token is refused until there is something to show.

mod listener;

pub(crate) use listener::Admin;

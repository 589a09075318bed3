//! The state that a route keeps between calls: its use of its limits, its cooldowns after rate limits, and its latency.
//!
//! Each node has its own state. A new catalog takes over the state from the old one.

mod breaker;
mod latency;
mod limits;
mod routing;
mod state;

pub(crate) use breaker::RouteBreaker;
pub(crate) use latency::latency_ranks;
pub(crate) use limits::LimitReached;
pub use limits::RouteLimits;
pub use routing::{RouteOrder, Routing};
pub(crate) use state::RouteState;

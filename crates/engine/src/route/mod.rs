//! The state that a route keeps between calls: its use of its limits, its rests after rate limits,
//! and its latency.
//!
//! Each node has its own state. When the catalog is replaced, the new one keeps it.

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

//! The state that one route of a model keeps between calls: its limits, its rests, its latency.
//!
//! Each node has its own, and a new catalog takes it over.

mod latency;
mod limits;
mod rest;
mod routing;
mod state;

pub(crate) use latency::latency_ranks;
pub(crate) use limits::LimitReached;
pub use limits::RouteLimits;
pub(crate) use rest::RouteRest;
pub use routing::{RouteOrder, Routing};
pub(crate) use state::RouteState;

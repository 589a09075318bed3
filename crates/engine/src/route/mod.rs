//! What one route of a model remembers from call to call: its limits, its rests, how long its answers take.
//!
//! All of it is of this node alone and is kept when the catalog is replaced.

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

//! The state of a route, which a replaced catalog takes over.

use super::latency::RouteLatency;
use super::limits::RouteUsage;
use super::rest::RouteRest;

/// What this node has learnt about a route from earlier calls.
#[derive(Debug, Default)]
pub(crate) struct RouteState {
    pub(crate) rest: RouteRest,
    pub(crate) usage: RouteUsage,
    pub(crate) latency: RouteLatency,
}

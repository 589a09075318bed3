//! The state of a route, which a replaced catalog takes over.

use super::latency::RouteLatency;
use super::limits::RouteUsage;
use super::rest::RouteRest;

/// What is known of a route from its earlier calls.
#[derive(Debug, Default)]
pub(crate) struct RouteState {
    pub(crate) rest: RouteRest,
    pub(crate) usage: RouteUsage,
    pub(crate) latency: RouteLatency,
}

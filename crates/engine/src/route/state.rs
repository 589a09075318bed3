//! The state of a route, which is kept when the catalog is replaced.

use super::breaker::RouteBreaker;
use super::latency::RouteLatency;
use super::limits::RouteUsage;

/// What this node knows about a route from earlier calls.
#[derive(Debug, Default)]
pub(crate) struct RouteState {
    pub(crate) breaker: RouteBreaker,
    pub(crate) usage: RouteUsage,
    pub(crate) latency: RouteLatency,
}

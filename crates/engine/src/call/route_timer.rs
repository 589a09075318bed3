//! Measures how long a route takes to start its answer, for models whose route order depends on latency.

use std::sync::Arc;
use std::time::Instant;

use crate::catalog::Route;
use crate::clock;

/// A timed attempt. The time ends with the first content of a stream, or when a whole answer has arrived.
#[derive(Debug)]
pub(crate) struct RouteTimer {
    route: Arc<Route>,
    is_streamed: bool,
    began: Instant,
}

impl RouteTimer {
    pub(crate) fn start(route: &Arc<Route>, is_streamed: bool) -> Self {
        Self {
            route: Arc::clone(route),
            is_streamed,
            began: Instant::now(),
        }
    }

    /// Records the time, because the stream has begun or the whole answer has arrived.
    pub(crate) fn answered(&self) {
        let (latency, took) = (&self.route.state.latency, self.began.elapsed());
        latency.measured(self.is_streamed, took, clock::steady());
    }

    pub(crate) fn failed(&self) {
        let latency = &self.route.state.latency;
        latency.failed(self.is_streamed, clock::steady());
    }
}

//! Measures how long a route takes until its answer begins, for models whose order depends on it.

use std::sync::Arc;
use std::time::Instant;

use crate::catalog::Route;
use crate::clock;

/// One attempt that is measured: until the first content of a stream, or until a whole answer is there.
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

    /// The answer has begun.
    pub(crate) fn answered(&self) {
        let (latency, took) = (&self.route.state.latency, self.began.elapsed());
        latency.measured(self.is_streamed, took, clock::steady());
    }

    /// There was no answer.
    pub(crate) fn failed(&self) {
        let latency = &self.route.state.latency;
        latency.failed(self.is_streamed, clock::steady());
    }
}

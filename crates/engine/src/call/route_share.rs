//! The share that one attempt takes from the limits of its route.

use std::sync::Arc;

use crate::catalog::Route;
use crate::clock;
use crate::route::LimitReached;

/// The share that an attempt has taken from the limits of its route. Dropping it returns the tokens, because a failed
/// call has used none. If the attempt has not started, dropping it also returns the request.
#[derive(Debug)]
pub(crate) struct RouteShare {
    route: Arc<Route>,
    tokens: u64,
    is_started: bool,
}

impl RouteShare {
    /// Takes the share of one attempt; `None` if the route has no limits.
    pub(crate) fn take(route: &Arc<Route>, tokens: u64) -> Result<Option<Self>, LimitReached> {
        if !route.limits.is_limited() {
            return Ok(None);
        }
        let usage = &route.state.usage;
        usage.take(tokens, route.limits, clock::steady())?;
        Ok(Some(Self {
            route: Arc::clone(route),
            tokens,
            is_started: false,
        }))
    }

    /// Marks the attempt as started. From now on its request counts, however it ends.
    pub(crate) fn start(&mut self) {
        self.is_started = true;
    }

    /// Replaces the estimated tokens in the route's limits by those that the settled call used.
    pub(crate) fn settle(mut self, tokens: u64) {
        let estimated = std::mem::take(&mut self.tokens);
        let usage = &self.route.state.usage;
        usage.correct_tokens(estimated, tokens, self.route.limits, clock::steady());
    }
}

impl Drop for RouteShare {
    fn drop(&mut self) {
        let (usage, limits) = (&self.route.state.usage, self.route.limits);
        if !self.is_started {
            usage.give_back_request(limits, clock::steady());
        }
        if self.tokens > 0 {
            usage.correct_tokens(self.tokens, 0, limits, clock::steady());
        }
    }
}

//! Which routes a call tries, and in which order.

use std::sync::Arc;
use std::time::Instant;

use protocol::Failure;
use rand::RngExt as _;
use upstream::{RouteCandidate, order_routes};

use crate::call::progress::Progress;
use crate::call::route_failure::RouteFailure;
use crate::catalog::{Model, Route};

/// The routes of one call, in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct RoutePlan {
    model: Arc<Model>,
    order: Vec<usize>,
    next: usize,
    last_failure: Option<Failure>,
}

impl RoutePlan {
    /// Orders the routes that can carry a call. Fails if there is none now.
    pub(crate) fn new(
        model: &Arc<Model>,
        carries: impl Fn(&Route) -> bool,
    ) -> Result<Self, Failure> {
        let fits = |route: &Route| route.channel.is_live(Instant::now) && carries(route);
        let fit: Vec<usize> = model
            .routes
            .iter()
            .enumerate()
            .filter(|(_, route)| fits(route))
            .map(|(index, _)| index)
            .collect();
        let order = match fit.as_slice() {
            [] => {
                let out = model.unavailable(&carries);
                return Err(out.unwrap_or_else(|| model.unreachable()));
            }
            [_] => fit,
            _ => {
                let candidates: Vec<RouteCandidate> = fit
                    .iter()
                    .filter_map(|index| model.routes.get(*index))
                    .map(|route| RouteCandidate {
                        priority: route.priority,
                        weight: route.weight,
                        state: route.channel.state(Instant::now),
                    })
                    .collect();
                let ranks = order_routes(&candidates, rand::rng().random());
                ranks
                    .into_iter()
                    .filter_map(|rank| fit.get(rank).copied())
                    .collect()
            }
        };
        Ok(Self {
            model: Arc::clone(model),
            order,
            next: 0,
            last_failure: None,
        })
    }

    /// The next route to try. The first is free; further ones take from the retry budget.
    pub(crate) fn next(&mut self, progress: &Progress) -> Option<Arc<Route>> {
        let engine = progress.engine();
        let route = Arc::clone(self.route(self.next)?);
        if self.next == 0 {
            engine.retries.earn();
        } else if progress.is_gone() || !engine.retries.take() {
            return None;
        } else {
            engine.metrics().failovers.inc();
        }
        self.next += 1;
        progress.mark_attempt(&route.channel);
        Some(route)
    }

    /// Notes why a route failed. Unless the next route may be tried, it was the last one.
    pub(crate) fn record_failure(&mut self, failed: RouteFailure) {
        self.last_failure = Some(failed.failure);
        if !failed.may_try_next {
            self.next = self.order.len();
        }
    }

    /// What the client is told when every attempt has failed.
    pub(crate) fn last_failure(&mut self) -> Failure {
        let last_failure = self.last_failure.take();
        last_failure.unwrap_or_else(Failure::upstream_error)
    }

    pub(crate) fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The route that is tried first.
    pub(crate) fn first(&self) -> Option<&Arc<Route>> {
        self.route(0)
    }

    fn route(&self, place: usize) -> Option<&Arc<Route>> {
        self.model.routes.get(*self.order.get(place)?)
    }
}

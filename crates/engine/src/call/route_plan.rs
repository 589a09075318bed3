//! Decides which routes a call, a session or a task tries, and in which order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::{Meter, Wait};
use protocol::Failure;
use rand::RngExt as _;
use upstream::{BreakerState, RouteCandidate, order_routes, sticky_rank};

use crate::call::attempt::AttemptLog;
use crate::call::progress::Progress;
use crate::call::route_failure::RouteFailure;
use crate::call::route_share::RouteShare;
use crate::call::route_timer::RouteTimer;
use crate::catalog::{Model, Route};
use crate::clock;
use crate::route::{RouteOrder, latency_ranks};

/// The routes of one call, in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct RoutePlan {
    model: Arc<Model>,
    order: Vec<usize>,
    next: usize,
    last_failure: Option<Failure>,
    /// The number of tokens that the call takes from the limits of a route.
    tokens: u64,
    /// The share that the next attempt has taken from the limits of its route.
    share: Option<RouteShare>,
    /// The shortest wait among the routes that were passed over because they are at their limits.
    limited: Option<Wait>,
    /// Whether another model was tried before. If so, the first attempt counts as a retry too.
    is_fallback: bool,
    /// Whether no further attempt may be made, although routes may be left.
    is_stopped: bool,
}

/// The properties of a call that its route order may depend on.
pub(crate) struct CallTraits<'c> {
    /// The estimated usage of the call.
    pub(crate) meter: &'c Meter,
    pub(crate) is_streamed: bool,
    /// The same for all calls that should use the same route.
    pub(crate) sticky_key: Option<u64>,
}

impl RoutePlan {
    /// Orders the routes that can serve a call. Fails if there is none now.
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
        if fit.is_empty() {
            let out = model.unavailable(&carries);
            return Err(out.unwrap_or_else(|| model.unreachable()));
        }
        let mut plan = Self {
            model: Arc::clone(model),
            order: fit,
            next: 0,
            last_failure: None,
            tokens: 0,
            share: None,
            limited: None,
            is_fallback: false,
            is_stopped: false,
        };
        if plan.order.len() > 1 {
            plan.sort(|_, _| (), |(), _| (0, 0));
        }
        Ok(plan)
    }

    /// Orders the routes again by the model's routing settings, such as cost, latency and stickiness.
    pub(crate) fn arrange(&mut self, traits: &CallTraits<'_>) {
        let routing = &self.model.routing;
        if self.order.len() < 2 || routing.is_plain() {
            return;
        }
        let order = routing.order;
        let latencies = |plan: &Self, draw: u64| -> Vec<u64> {
            if order != RouteOrder::Latency {
                return Vec::new();
            }
            let routes = plan
                .order
                .iter()
                .filter_map(|it| plan.model.routes.get(*it));
            // Exploration considers only routes that would be tried first if they were the fastest.
            let tier = |route: &Route| (state(route) != BreakerState::Closed, route.priority);
            let best = routes.clone().map(|route| tier(route)).min();
            let times = routes.map(|route| (&route.state.latency, Some(tier(route)) == best));
            latency_ranks(times, traits.is_streamed, draw, clock::steady()).collect()
        };
        self.sort(latencies, |latencies, (place, route)| {
            let rank = match order {
                RouteOrder::Priority => 0,
                RouteOrder::Latency => latencies.get(place).copied().unwrap_or(0),
                RouteOrder::Cost => cost_rank(route, traits.meter),
            };
            let sticky = traits.sticky_key.map_or(0, |key| {
                let key = upstream::hash_bytes(key, route.channel_name.as_bytes());
                sticky_rank(key, route.model.as_bytes(), route.weight)
            });
            (rank, sticky)
        });
    }

    /// Sorts the routes by health, by priority and by the ranks from `rank`, and then at random by weight. `prepare`
    /// runs once for all routes, with the random draw of this call.
    fn sort<P>(
        &mut self,
        prepare: impl FnOnce(&Self, u64) -> P,
        rank: impl Fn(&P, (usize, &Route)) -> (u64, u64),
    ) {
        let draw: u64 = rand::rng().random();
        let prepared = prepare(self, draw);
        let routes = self
            .order
            .iter()
            .filter_map(|it| self.model.routes.get(*it));
        let candidates: Vec<RouteCandidate> = routes
            .enumerate()
            .map(|(place, route)| {
                let (rank, sticky_rank) = rank(&prepared, (place, route));
                RouteCandidate {
                    priority: route.priority,
                    weight: route.weight,
                    state: state(route),
                    rank,
                    sticky_rank,
                }
            })
            .collect();
        let ranks = order_routes(&candidates, draw).into_iter();
        self.order = ranks
            .filter_map(|rank| self.order.get(rank).copied())
            .collect();
    }

    /// Takes the share of the first attempt from the limits of its route, and passes over routes that are at their
    /// limits. Fails if all of them are. A call that is refused later returns its share.
    pub(crate) fn reserve(
        &mut self,
        tokens: u64,
        log: &mut impl AttemptLog,
    ) -> Result<(), Failure> {
        self.tokens = tokens;
        if !self.model.has_limited_routes {
            return Ok(());
        }
        self.pass_over_limited(log);
        if self.first().is_some() {
            return Ok(());
        }
        Err(self.last_failure())
    }

    /// Returns the share of an attempt that has not started.
    pub(crate) fn return_share(&mut self) {
        self.share = None;
    }

    /// Passes over routes that are at their limits, and takes the share of the next attempt.
    fn pass_over_limited(&mut self, log: &mut impl AttemptLog) {
        while let Some(route) = self.route(self.next) {
            match RouteShare::take(route, self.tokens) {
                Ok(share) => {
                    self.share = share;
                    return;
                }
                Err(reached) => {
                    log.passed_over(route, reached.what);
                    self.limited = Some(sooner(self.limited, reached.wait));
                    self.order.remove(self.next);
                }
            }
        }
    }

    /// Starts the next attempt and returns its route. The first attempt is free; further attempts take from the retry
    /// budget.
    pub(crate) fn next(
        &mut self,
        progress: &Progress,
        log: &mut impl AttemptLog,
    ) -> Option<Arc<Route>> {
        let engine = progress.engine();
        if self.model.has_limited_routes && self.share.is_none() {
            self.pass_over_limited(log);
        }
        let route = Arc::clone(self.route(self.next)?);
        if self.next == 0 && !self.is_fallback {
            engine.retries.earn();
        } else if progress.is_gone() || !engine.retries.take() {
            self.share = None;
            self.is_stopped = true;
            return None;
        } else {
            engine.metrics().failovers.inc();
        }
        self.next += 1;
        progress.mark_attempt(&route.channel);
        let mut share = self.share.take();
        if let Some(share) = &mut share {
            share.start();
        }
        log.start_attempt(&route, share);
        Some(route)
    }

    /// Starts to time the attempt, if the order of the model's routes depends on latency.
    pub(crate) fn time(&self, route: &Arc<Route>, is_streamed: bool) -> Option<RouteTimer> {
        let is_timed = self.model.routing.order == RouteOrder::Latency;
        is_timed.then(|| RouteTimer::start(route, is_streamed))
    }

    /// Records why the attempt failed. If no other route may be tried, the plan stops.
    pub(crate) fn attempt_failed(&mut self, failed: RouteFailure, log: &mut impl AttemptLog) {
        log.attempt_failed(&failed.failure);
        self.last_failure = Some(failed.failure);
        if !failed.may_try_next {
            self.next = self.order.len();
            self.is_stopped = true;
        }
    }

    /// Whether every route has failed or is at its limit, while a fallback may still be tried.
    pub(crate) fn is_exhausted(&self) -> bool {
        !self.is_stopped && self.route(self.next).is_none()
    }

    /// Continues after the plan of another model, whose routes have all failed or are at their limits.
    pub(crate) fn continue_after(&mut self, before: &Self, tokens: u64) {
        self.tokens = tokens;
        self.is_fallback = before.next > 0 || before.is_fallback;
    }

    /// The failure that the client gets when every attempt has failed or none could be made.
    pub(crate) fn last_failure(&mut self) -> Failure {
        match (self.last_failure.take(), self.limited) {
            (Some(failure), _) => failure,
            (None, Some(wait)) => at_limit(&self.model, wait),
            (None, None) => Failure::upstream_error(),
        }
    }

    pub(crate) fn model(&self) -> &Arc<Model> {
        &self.model
    }

    pub(crate) fn first(&self) -> Option<&Arc<Route>> {
        self.route(0)
    }

    fn route(&self, place: usize) -> Option<&Arc<Route>> {
        self.model.routes.get(*self.order.get(place)?)
    }
}

/// The health of a route: the state of its channel's breaker, or of the route's own breaker if the channel's is closed.
fn state(route: &Route) -> BreakerState {
    match route.channel.state(Instant::now) {
        BreakerState::Closed => route.state.breaker.state(Instant::now),
        troubled => troubled,
    }
}

/// The cost of the call over this route. A route with an unknown cost comes last.
fn cost_rank(route: &Route, meter: &Meter) -> u64 {
    let cost = route.cost.as_ref().and_then(|cost| cost.of(meter));
    cost.map_or(u64::MAX, |cost| {
        u64::try_from(cost.amount.get()).unwrap_or(0)
    })
}

fn sooner(one: Option<Wait>, other: Wait) -> Wait {
    match (one, other) {
        (Some(Wait::Ms(one)), Wait::Ms(other)) => Wait::Ms(one.min(other)),
        (Some(Wait::Ms(ms)), Wait::Never) => Wait::Ms(ms),
        (_, other) => other,
    }
}

/// The failure for a model whose routes are all at their limits.
fn at_limit(model: &Model, wait: Wait) -> Failure {
    match wait {
        Wait::Ms(ms) => {
            let message = format!("The model `{}` is at its limit; try again later.", model.id);
            let failure = Failure::rate_limit_exceeded(message);
            failure.retry_after(Duration::from_millis(ms))
        }
        Wait::Never => {
            let message = format!(
                "The request is larger than the limits of the model `{}` allow at all.",
                model.id
            );
            Failure::rate_limit_exceeded(message).should_retry(false)
        }
    }
}

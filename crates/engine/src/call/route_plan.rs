//! Which routes a call tries, one after the other, and what came of each.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use protocol::scrub::Names;
use protocol::{Failure, native, voice};
use rand::RngExt as _;
use upstream::{
    CallError, CallErrorKind, CallOutcome, Endpoint, RouteCandidate, Sent, UpstreamRequest,
    UpstreamResponse, order_routes,
};

use crate::call::attempt::Attempt;
use crate::call::progress::Progress;
use crate::catalog::{Model, Route};
use crate::text::request::unreachable_model;

/// An upstream's error body is read up to this size.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// The longest pause a caller is told to make.
pub(crate) const RETRY_AFTER_S_MAX: u64 = 60;

/// A route that gave no answer.
#[derive(Debug)]
pub(crate) struct RouteFailure {
    /// What the caller is told when no other route does better.
    pub(crate) failure: Failure,
    /// Whether another route may be tried.
    pub(crate) may_try_next: bool,
}

impl RouteFailure {
    pub(crate) fn try_next(failure: Failure) -> Self {
        Self {
            failure,
            may_try_next: true,
        }
    }

    pub(crate) fn stop(failure: Failure) -> Self {
        Self {
            failure,
            may_try_next: false,
        }
    }
}

/// The routes of one call in the order of tries.
#[derive(Debug)]
pub(crate) struct RoutePlan {
    model: Arc<Model>,
    order: Vec<usize>,
    next: usize,
    last_failure: Option<Failure>,
}

impl RoutePlan {
    /// The routes that can carry a call; a failure when there is none now.
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
                return Err(out.unwrap_or_else(|| unreachable_model(model)));
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

    /// The next route worth trying. The first is free; further ones come out of the budget.
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

    /// Notes a miss; without `elsewhere` it was the last try.
    pub(crate) fn record_failure(&mut self, failed: RouteFailure) {
        self.last_failure = Some(failed.failure);
        if !failed.may_try_next {
            self.next = self.order.len();
        }
    }

    /// What the caller is told when all tries missed.
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

/// Sends the call over one route and gives the answer when its head says that it is one.
pub(crate) async fn send(
    route: &Route,
    public_model: &str,
    call: &UpstreamRequest,
    progress: &Progress,
    attempt: &mut Attempt<'_>,
) -> Result<UpstreamResponse, RouteFailure> {
    // From here on a byte may be under way; a provable "nothing left us" takes it back below.
    let was_sent = progress.is_sent();
    progress.mark_sent();
    let sent = route.channel.send(call).await;
    let incoming = match sent {
        Ok(incoming) => incoming,
        Err(error) => {
            if error.sent == Sent::No && !was_sent {
                progress.mark_unsent();
            }
            return Err(lost(route, &error, attempt));
        }
    };
    // Whether a good status stands before a good answer is seen later.
    if (200..300).contains(&incoming.status) {
        return Ok(incoming);
    }
    let outcome = CallOutcome::of_status(incoming.status, incoming.retry_after);
    // The words of a 500 may blame the request. All other statuses speak for themselves, also when
    // the words never come.
    if incoming.status != 500 {
        attempt.report(outcome);
    }
    // Boxed: few calls go this way.
    let refusal = refused(route, public_model, call.endpoint, &call.body, incoming);
    let failed = Box::pin(refusal).await;
    attempt.report(if failed.may_try_next {
        outcome
    } else {
        CallOutcome::Served
    });
    Err(failed)
}

/// The upstream answered with an error. Words of the `request` may be told to the caller again.
pub(crate) async fn refused(
    route: &Route,
    public_model: &str,
    endpoint: Endpoint,
    request: &[Bytes],
    incoming: UpstreamResponse,
) -> RouteFailure {
    let status = incoming.status;
    let retry_after = incoming.retry_after;
    let text = incoming
        .body
        .collect(ERROR_BYTES_MAX)
        .await
        .unwrap_or_default();
    let names = Names {
        upstream: &route.model,
        public: public_model,
        hidden: route.channel.identity(),
        request,
    };
    let mut failure = if endpoint.is_voice() {
        voice::read_failure(status, &text, names)
    } else {
        native::read_failure(endpoint.dialect(), status, &text, names)
    };
    if failure.status() == 503 {
        let seconds = retry_after.map_or(1, |pause| pause.as_secs().clamp(1, RETRY_AFTER_S_MAX));
        failure = failure.retry_after(u32::try_from(seconds).unwrap_or(1));
    }
    tracing::debug!(
        channel = route.channel.name(),
        status,
        "the upstream refused a call"
    );
    if matches!(status, 401 | 403) {
        tracing::error!(
            channel = route.channel.name(),
            model = &*route.model,
            status,
            "the upstream refuses our credential"
        );
    }
    // Whoever refuses the request as such would be right on the next route as well.
    RouteFailure {
        may_try_next: failure.status() >= 500,
        failure,
    }
}

/// The upstream gave no answer, or none that can be used.
pub(crate) fn lost(route: &Route, error: &CallError, attempt: &mut Attempt<'_>) -> RouteFailure {
    tracing::warn!(
        channel = route.channel.name(),
        error = error as &dyn std::error::Error,
        "an upstream call failed"
    );
    attempt.report(CallOutcome::Failed);
    match error.kind {
        CallErrorKind::Connect | CallErrorKind::Broken => {
            RouteFailure::try_next(Failure::upstream_error())
        }
        CallErrorKind::Timeout(_) if error.sent == Sent::No => {
            RouteFailure::try_next(Failure::upstream_timeout())
        }
        // The time for this call is used up.
        CallErrorKind::Timeout(_) => RouteFailure::stop(Failure::upstream_timeout()),
        CallErrorKind::TooLarge => RouteFailure::stop(Failure::upstream_error()),
    }
}

//! One attempt to call an upstream. Its outcome is reported to the breakers of the channel and of the route.

use std::time::Instant;

use protocol::Failure;
use store::RequestId;
use upstream::{CallError, CallOutcome, Channel, UpstreamRequest, UpstreamResponse};

use crate::call::route_share::RouteShare;
use crate::catalog::Route;
use crate::route::RouteBreaker;

/// Records the attempts of a call. Implemented by the journal row of a call and by the admission that owns it.
pub(crate) trait AttemptLog {
    /// Records that a route is being tried. `share` is the share of the route's limits that the attempt has taken.
    fn start_attempt(&mut self, route: &Route, share: Option<RouteShare>);

    /// Records that a route is not tried, and why.
    fn passed_over(&mut self, route: &Route, reason: &str);

    fn attempt_failed(&mut self, failure: &Failure);
}

/// The log is `None` once the call is journaled. Further attempts are then not recorded.
impl<L: AttemptLog> AttemptLog for Option<&mut L> {
    fn start_attempt(&mut self, route: &Route, share: Option<RouteShare>) {
        if let Some(log) = self {
            log.start_attempt(route, share);
        }
    }

    fn passed_over(&mut self, route: &Route, reason: &str) {
        if let Some(log) = self {
            log.passed_over(route, reason);
        }
    }

    fn attempt_failed(&mut self, failure: &Failure) {
        if let Some(log) = self {
            log.attempt_failed(failure);
        }
    }
}

/// An attempt that has not ended. If it is dropped without a report, it reports an unknown outcome, so that a probe
/// whose caller left does not block the next probe.
#[derive(Debug)]
pub(crate) struct Attempt<'c> {
    channel: &'c Channel,
    route_breaker: Option<&'c RouteBreaker>,
    /// The request id of the call, for log lines.
    request_id: Option<RequestId>,
    /// Whether the outcome may decide how often the channel is used.
    counts: bool,
    is_reported: bool,
}

impl<'c> Attempt<'c> {
    /// An attempt that is made on a channel and not over a route, such as a poll or a probe.
    pub(crate) fn on(channel: &'c Channel) -> Self {
        Self {
            channel,
            route_breaker: None,
            request_id: None,
            counts: true,
            is_reported: false,
        }
    }

    pub(crate) fn over(route: &'c Route) -> Self {
        let route_breaker = &route.state.breaker;
        route_breaker.attempt(Instant::now);
        // Struct update syntax would drop the temporary attempt, whose `drop` reports an outcome.
        let mut attempt = Self::on(&route.channel);
        attempt.route_breaker = Some(route_breaker);
        attempt
    }

    /// An attempt of a free request. It reports nothing, because a free request must neither change how often the
    /// channel is used nor end the probe of another call.
    pub(crate) fn of_free_request(channel: &'c Channel) -> Self {
        let mut attempt = Self::on(channel);
        attempt.counts = false;
        attempt
    }

    pub(crate) fn of_call(mut self, request_id: RequestId) -> Self {
        self.request_id = Some(request_id);
        self
    }

    pub(crate) fn request_id(&self) -> Option<&str> {
        self.request_id.as_ref().map(RequestId::as_str)
    }

    pub(crate) async fn send(&self, call: &UpstreamRequest) -> Result<UpstreamResponse, CallError> {
        if self.counts {
            self.channel.send(call).await
        } else {
            self.channel.send_unreported(call).await
        }
    }

    /// Reports the outcome of the attempt to the channel and the route. Only the first report counts.
    pub(crate) fn report(&mut self, outcome: CallOutcome) {
        if self.counts && !std::mem::replace(&mut self.is_reported, true) {
            let now = Instant::now();
            self.channel.report(outcome, now);
            if let Some(route_breaker) = self.route_breaker {
                route_breaker.report(outcome, || now);
            }
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.report(CallOutcome::Unknown);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::Dialect;
    use tokio::net::TcpListener;
    use upstream::{BreakerState, ChannelSpec, Endpoint, Timeouts};

    use super::*;

    #[tokio::test]
    async fn a_try_that_is_given_up_makes_room_for_the_next() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let spec = ChannelSpec {
            name: "silent".to_owned(),
            preset: "sim".parse().unwrap(),
            base_url: Some(format!("http://{}/v1", silent.local_addr().unwrap())),
            credential: None,
            account: upstream::Account::default(),
            protocols: None,
            private_network: false,
            keeps_output_limit: None,
            client_gone_drain: None,
            counts_tokens: None,
            sends_traceparent: false,
        };
        let channel = Channel::new(spec, Timeouts::default()).unwrap();
        let now = Instant::now();
        let past = now.checked_sub(Duration::from_secs(30)).unwrap();
        let retry_after = Some(Duration::from_secs(1));
        channel.report(CallOutcome::Overloaded { retry_after }, past);
        assert_eq!(channel.state(|| now), BreakerState::Probe);

        let attempt = Attempt::on(&channel);
        let dialect = Dialect::Chat;
        let stream = false;
        let call = UpstreamRequest::json(Endpoint::Text { dialect, stream }, "any", Vec::new());
        // Dropping the future simulates a caller who leaves, because this upstream never answers.
        let left = tokio::time::timeout(Duration::ZERO, channel.send(&call)).await;
        assert!(left.is_err());
        assert_ne!(
            channel.state(|| now),
            BreakerState::Probe,
            "the probe is under way"
        );
        drop(attempt);
        assert_eq!(channel.state(|| now), BreakerState::Probe);

        // A free request ends neither the cooldown of a channel nor the probe of another call.
        let free_request = async || {
            let mut free = Attempt::of_free_request(&channel);
            let left = tokio::time::timeout(Duration::ZERO, free.send(&call)).await;
            assert!(left.is_err());
            free.report(CallOutcome::Served);
        };
        free_request().await;
        assert_eq!(channel.state(|| now), BreakerState::Probe);
        let mut paid = Attempt::on(&channel);
        let left = tokio::time::timeout(Duration::ZERO, paid.send(&call)).await;
        assert!(left.is_err());
        free_request().await;
        assert_ne!(channel.state(|| now), BreakerState::Probe);
        paid.report(CallOutcome::Served);
        assert_eq!(channel.state(|| now), BreakerState::Closed);
    }
}

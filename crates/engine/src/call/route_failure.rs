//! Why one route gave no answer, and whether the next one may be tried.

use bytes::Bytes;
use protocol::native::Broken;
use protocol::scrub::Names;
use protocol::{Failure, native, voice};
use upstream::{CallError, CallErrorKind, CallOutcome, Endpoint, Sent, UpstreamResponse};

use crate::call::attempt::Attempt;
use crate::call::collect_body::CollectError;
use crate::catalog::Route;
use crate::failures::{no_memory_for, retry_after_s};

/// An upstream's error body is read up to this size.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// A route that gave no answer.
#[derive(Debug)]
pub(crate) struct RouteFailure {
    /// What the client is told if no other route answers.
    pub(crate) failure: Failure,
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

    /// The upstream answered with an error status. Its message may repeat parts of `request` to the client.
    pub(crate) async fn refused(
        route: &Route,
        public_model: &str,
        endpoint: Endpoint,
        request: &[Bytes],
        response: UpstreamResponse,
    ) -> Self {
        Self::read_refusal(
            route,
            public_model,
            request,
            response,
            |status, body, names| {
                if endpoint.is_voice() {
                    voice::read_failure(status, body, names)
                } else {
                    native::read_failure(endpoint.dialect(), status, body, names)
                }
            },
        )
        .await
    }

    /// The upstream answered a WebSocket handshake with an error status. All its sockets are voice endpoints.
    pub(crate) async fn refused_handshake(
        route: &Route,
        public_model: &str,
        response: UpstreamResponse,
    ) -> Self {
        Self::read_refusal(route, public_model, &[], response, voice::read_failure).await
    }

    async fn read_refusal(
        route: &Route,
        public_model: &str,
        request: &[Bytes],
        response: UpstreamResponse,
        read_failure: impl Fn(u16, &[u8], Names<'_>) -> Failure,
    ) -> Self {
        let status = response.status;
        let retry_after = response.retry_after;
        let text = response.body.collect(ERROR_BYTES_MAX).await;
        let text = text.unwrap_or_default();
        let names = Names {
            upstream: &route.model,
            public: public_model,
            hidden: route.channel.identity(),
            request,
        };
        let mut failure = read_failure(status, &text, names);
        if failure.status() == 503 {
            failure = failure.retry_after(retry_after_s(retry_after.unwrap_or_default()));
        }
        let channel = route.channel.name();
        tracing::debug!(channel, status, "the upstream refused a call");
        if matches!(status, 401 | 403) {
            let model = &*route.model;
            tracing::error!(
                channel,
                model,
                status,
                "the upstream refuses our credential"
            );
        }
        // An upstream that rejects the request itself is right, so the next route would reject it too.
        Self {
            may_try_next: failure.status() >= 500,
            failure,
        }
    }

    /// The upstream gave no answer, or one that cannot be used.
    pub(crate) fn lost(route: &Route, error: &CallError, attempt: &mut Attempt<'_>) -> Self {
        tracing::warn!(
            channel = route.channel.name(),
            error = error as &dyn std::error::Error,
            "an upstream call failed"
        );
        attempt.report(CallOutcome::Failed);
        match error.kind {
            CallErrorKind::Connect | CallErrorKind::Broken => {
                Self::try_next(Failure::upstream_error())
            }
            CallErrorKind::Timeout(_) if error.sent == Sent::No => {
                Self::try_next(Failure::upstream_timeout())
            }
            // The time for this call is used up.
            CallErrorKind::Timeout(_) => Self::stop(Failure::upstream_timeout()),
            CallErrorKind::TooLarge => Self::stop(Failure::upstream_error()),
        }
    }

    /// The body of the answer could not be collected. An answer that broke off was content, so no other route
    /// may repeat it.
    pub(crate) fn uncollected(
        route: &Route,
        error: &CollectError,
        bytes_max: usize,
        attempt: &mut Attempt<'_>,
    ) -> Self {
        match error {
            CollectError::Lost(error) => Self {
                may_try_next: false,
                ..Self::lost(route, error, attempt)
            },
            CollectError::TooLarge => {
                attempt.report(CallOutcome::Failed);
                let channel = route.channel.name();
                tracing::warn!(channel, bytes_max, "an upstream's answer is too large");
                Self::stop(Failure::upstream_error())
            }
            CollectError::NoMemory => Self::stop(no_memory_for("this answer")),
        }
    }

    /// The answer is not an answer. Nothing of it has reached the client, so another route may do better.
    pub(crate) fn broken(route: &Route, broken: &Broken, attempt: &mut Attempt<'_>) -> Self {
        tracing::warn!(channel = route.channel.name(), %broken, "an upstream's answer is not one");
        let failure = broken_failure(broken);
        // A refusal of the request under status 200 is still an answer of a healthy channel.
        attempt.report(if failure.status() < 500 {
            CallOutcome::Served
        } else {
            CallOutcome::Failed
        });
        Self {
            may_try_next: failure.status() >= 500,
            failure,
        }
    }
}

/// What the client is told about a broken answer.
pub(crate) fn broken_failure(broken: &Broken) -> Failure {
    match broken {
        Broken::Failure(failure) => failure.clone(),
        Broken::Malformed(_) | Broken::TooLarge(_) | Broken::Unfinished => {
            Failure::upstream_error()
        }
    }
}

//! Describes why a route gave no answer, and decides whether the next route may be tried.

use bytes::Bytes;
use protocol::native::UnusableAnswer;
use protocol::scrub::Names;
use protocol::{Code, Failure, native, voice};
use upstream::{CallError, CallErrorKind, CallOutcome, Channel, Endpoint, Sent, UpstreamResponse};

use crate::call::attempt::Attempt;
use crate::call::collect_body::CollectError;
use crate::catalog::Route;
use crate::failures::{no_memory_for, retry_after_upstream};

/// The maximum number of bytes that are read of an upstream's error body.
const ERROR_BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct RouteFailure {
    /// The failure that the client gets if no other route answers.
    pub(crate) failure: Failure,
    pub(crate) may_try_next: bool,
    /// Whether the upstream may have done the work, so that another attempt could repeat it.
    pub(crate) may_have_run: bool,
}

impl RouteFailure {
    pub(crate) fn try_next(failure: Failure) -> Self {
        Self {
            failure,
            may_try_next: true,
            may_have_run: false,
        }
    }

    pub(crate) fn stop(failure: Failure) -> Self {
        Self {
            failure,
            may_try_next: false,
            may_have_run: false,
        }
    }

    fn after_work(self, may_have_run: bool) -> Self {
        Self {
            may_have_run,
            ..self
        }
    }

    /// The failure for an upstream that answered with an error status. The message for the client may repeat parts of
    /// `request`.
    pub(crate) async fn refused(
        route: &Route,
        public_model: &str,
        endpoint: Endpoint,
        request: &[Bytes],
        response: UpstreamResponse,
        request_id: Option<&str>,
    ) -> Self {
        Self::read_refusal(
            route,
            public_model,
            request,
            response,
            request_id,
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

    /// The failure for an upstream that answered a WebSocket handshake with an error status. All WebSocket endpoints
    /// are voice endpoints.
    pub(crate) async fn refused_handshake(
        route: &Route,
        public_model: &str,
        response: UpstreamResponse,
        request_id: Option<&str>,
    ) -> Self {
        let read = voice::read_failure;
        Self::read_refusal(route, public_model, &[], response, request_id, read).await
    }

    async fn read_refusal(
        route: &Route,
        public_model: &str,
        request: &[Bytes],
        response: UpstreamResponse,
        request_id: Option<&str>,
        read_failure: impl Fn(u16, &[u8], Names<'_>) -> Failure,
    ) -> Self {
        let status = response.status;
        let retry_after = response.retry_after;
        let text = response.body.collect(ERROR_BYTES_MAX).await;
        let mut text = text.unwrap_or_default();
        if let Some(name) = response.error_name.as_ref().and_then(|it| it.to_str().ok()) {
            text = native::with_error_name(&text, name).into();
        }
        let names = Names {
            upstream: &route.model,
            public: public_model,
            hidden: route.channel.identity(),
            request,
        };
        let read = |body: &[u8]| read_failure(status, body, names);
        let mut failure = read_without_secrets(&route.channel, &text, read);
        if failure.status() == 503 {
            failure = retry_after_upstream(failure, retry_after.unwrap_or_default());
        }
        let channel = route.channel.name();
        tracing::debug!(request_id, channel, status, "the upstream refused a call");
        if matches!(status, 401 | 403) && native::blames_clock(&text) {
            tracing::error!(
                request_id,
                channel,
                status,
                "the upstream refuses our signature because the clock of this machine is wrong"
            );
        } else if matches!(status, 401 | 403) {
            let model = &*route.model;
            tracing::error!(
                request_id,
                channel,
                model,
                status,
                "the upstream refuses our credential"
            );
        }
        // An upstream that rejects the request itself is healthy, and the next route would reject the request too.
        let is_refusal = (400..500).contains(&status) && status != 408;
        Self {
            may_try_next: failure.status() >= 500,
            may_have_run: !is_refusal && leaves_open(&failure),
            failure,
        }
    }

    /// The failure for an upstream that gave no usable answer.
    pub(crate) fn lost(route: &Route, error: &CallError, attempt: &mut Attempt<'_>) -> Self {
        tracing::warn!(
            request_id = attempt.request_id(),
            channel = route.channel.name(),
            error = error as &dyn std::error::Error,
            "an upstream call failed"
        );
        attempt.report(match error.kind {
            CallErrorKind::Credential => CallOutcome::CredentialRefused,
            CallErrorKind::Unsignable => CallOutcome::Unknown,
            _ => CallOutcome::Failed,
        });
        let failed = match error.kind {
            CallErrorKind::Connect
            | CallErrorKind::Credential
            | CallErrorKind::Broken
            | CallErrorKind::Unsignable => Self::try_next(Failure::upstream_error()),
            CallErrorKind::Timeout(_) if error.sent == Sent::No => {
                Self::try_next(Failure::upstream_timeout())
            }
            // A deadline has passed, and some of the request may have been sent.
            CallErrorKind::Timeout(_) => Self::stop(Failure::upstream_timeout()),
            CallErrorKind::TooLarge => Self::stop(Failure::upstream_error()),
        };
        failed.after_work(error.sent == Sent::Maybe)
    }

    /// The failure for a body that could not be collected. If the answer broke off, content had been received, so no
    /// other route may repeat it.
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
                tracing::warn!(
                    request_id = attempt.request_id(),
                    channel,
                    bytes_max,
                    "an upstream's answer is too large"
                );
                Self::stop(Failure::upstream_error()).after_work(true)
            }
            CollectError::NoMemory => Self::stop(no_memory_for("this answer")).after_work(true),
        }
    }

    /// The failure for an answer that cannot be used. The client has not seen any of it, so another route may be tried,
    /// unless the upstream rejects the request itself.
    pub(crate) fn broken(
        route: &Route,
        broken: &UnusableAnswer,
        attempt: &mut Attempt<'_>,
    ) -> Self {
        let failure = broken_failure(&route.channel, broken);
        // The text of an upstream may repeat the request. Only the journal gets it.
        let problem = match broken {
            UnusableAnswer::Failure(failure) => failure.message.clone(),
            other => other.to_string().into(),
        };
        tracing::warn!(
            request_id = attempt.request_id(),
            channel = route.channel.name(),
            %problem,
            "an upstream's answer cannot be used"
        );
        // A channel that refuses the request with status 200 is healthy.
        attempt.report(if failure.status() < 500 {
            CallOutcome::Served
        } else {
            CallOutcome::Failed
        });
        Self {
            may_try_next: failure.status() >= 500,
            may_have_run: leaves_open(&failure),
            failure,
        }
    }
}

/// Whether an upstream that answers with this failure may still have done the work. A refusal or an overload means that
/// it has not.
fn leaves_open(failure: &Failure) -> bool {
    failure.status() >= 500 && failure.code != Code::UpstreamOverloaded
}

/// The failure that the client gets for a broken answer of a channel. Its cause contains no secret of the channel.
pub(crate) fn broken_failure(channel: &Channel, broken: &UnusableAnswer) -> Failure {
    match broken {
        UnusableAnswer::Failure(failure) => {
            let mut failure = failure.clone();
            let cause = failure.cause.take();
            failure.cause = cause.map(|cause| channel.without_credential(&cause).into());
            failure
        }
        UnusableAnswer::Malformed(_) | UnusableAnswer::TooLarge(_) | UnusableAnswer::Unfinished => {
            Failure::upstream_error()
        }
    }
}

/// Reads an error body. The cause, which is logged, contains no secret of the channel. Secrets are replaced in the
/// whole body first, because the cause may contain only a part of a secret.
fn read_without_secrets(
    channel: &Channel,
    body: &[u8],
    read: impl Fn(&[u8]) -> Failure,
) -> Failure {
    let mut failure = read(body);
    let text = String::from_utf8_lossy(body);
    let hidden = channel.without_credential(&text);
    if hidden != text {
        failure.cause = read(hidden.as_bytes()).cause.take();
    }
    failure
}

#[cfg(test)]
mod tests {
    use upstream::{Account, ChannelSpec, Secret, Timeouts};

    use super::*;

    #[test]
    fn a_cause_has_no_secret_that_the_upstream_repeats() {
        let settings = [
            ("region", "us-east-1"),
            ("access_key_id", "ASIA4711"),
            ("session_token", "Fwo/session+token=="),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), Secret::new(value)));
        let channel = Channel::new(
            ChannelSpec {
                name: "cloud".to_owned(),
                preset: "bedrock".parse().unwrap(),
                base_url: None,
                credential: Some(Secret::new("Signature")),
                account: settings.into_iter().collect::<Account>(),
                protocols: None,
                private_network: false,
                keeps_output_limit: None,
                client_gone_drain: None,
                counts_tokens: None,
                sends_traceparent: false,
            },
            Timeouts::default(),
        )
        .unwrap();
        let read = |body: &[u8]| {
            native::read_failure(protocol::Dialect::Messages, 400, body, Names::default())
        };
        for token in ["Fwo/session+token==", r"Fwo\/session+token=="] {
            // The token is at the position where the cause is truncated.
            let padding = "x".repeat(1_972);
            let message = format!("{padding} x-amz-security-token:{token}");
            let body = format!(r#"{{"__type":"InvalidSignatureException","message":"{message}"}}"#);
            let plain = read(body.as_bytes());
            assert!(plain.cause.as_ref().unwrap().contains("Fwo"));
            let failure = read_without_secrets(&channel, body.as_bytes(), read);
            assert_eq!(failure.status(), plain.status());
            assert_eq!(failure.code, plain.code);
            assert!(!failure.cause.as_ref().unwrap().contains("Fwo"));
        }
        let other = br#"{"message":"too long"}"#;
        assert_eq!(
            read_without_secrets(&channel, other, read).cause,
            read(other).cause
        );
    }
}

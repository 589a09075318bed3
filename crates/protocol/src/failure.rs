//! Every error that can reach a client, and its four envelopes.
//!
//! A [`Failure`] is built where an error occurs, and written when it is sent to the client. Its message is
//! for the client and never contains anything that identifies an upstream. Details for operators
//! are in `cause`, which is never sent to a client.

mod code;
mod envelope;
mod retry;

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

pub use code::{Code, Family};
pub use retry::{RETRY_SOON, retry_after_seconds};

/// An error for a client. It is as small as a pointer, because nearly every result may contain one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(Box<FailureContent>);

const _: () = assert!(size_of::<Result<(), Failure>>() == size_of::<usize>());

/// The content of a [`Failure`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureContent {
    /// The kind of the error.
    pub code: Code,
    /// For the client. It contains nothing that identifies an upstream.
    pub message: Cow<'static, str>,
    /// The member of the request that caused the error.
    pub param: Option<Cow<'static, str>>,
    /// Replaces the status of the code: a rejected request keeps the upstream's status.
    pub status: Option<u16>,
    /// Details for client libraries that need more than the code.
    pub detail: Option<&'static Detail>,
    /// For the `retry-after` header.
    pub retry_after_s: Option<u32>,
    /// For the `x-should-retry` header: `false` if a retry could create or charge something twice.
    /// See [`Failure::retry_advice`].
    pub should_retry: Option<bool>,
    /// For the log only.
    pub cause: Option<Box<str>>,
}

/// Members of the Messages envelope that make a client library recover by itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Detail {
    /// Replaces the code in `details.error_code`, but not in `code`.
    pub error_code: &'static str,
    /// The members that the client library should leave out.
    pub unsupported: &'static [&'static str],
}

impl Deref for Failure {
    type Target = FailureContent;

    fn deref(&self) -> &FailureContent {
        &self.0
    }
}

impl DerefMut for Failure {
    fn deref_mut(&mut self) -> &mut FailureContent {
        &mut self.0
    }
}

/// A constant message, or a message formatted for this request.
type Message = Cow<'static, str>;

impl Failure {
    /// A failure with only a code and a message. Marked cold, to keep this code out of the path of
    /// successful calls.
    #[cold]
    pub fn new(code: Code, message: impl Into<Message>) -> Self {
        Self(Box::new(FailureContent {
            code,
            message: message.into(),
            param: None,
            status: None,
            detail: None,
            retry_after_s: None,
            should_retry: None,
            cause: None,
        }))
    }

    /// 400 `invalid_request`.
    pub fn invalid(message: impl Into<Message>) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    /// 400 `model_not_supported`.
    pub fn model_not_supported(message: impl Into<Message>) -> Self {
        Self::new(Code::ModelNotSupported, message).param("model")
    }

    /// 400 `routing_not_supported`.
    pub fn routing_not_supported(member: &'static str) -> Self {
        Self::new(
            Code::RoutingNotSupported,
            format!("`{member}` is not accepted: routes are chosen by the service."),
        )
        .param(member)
    }

    /// 400 `service_tier_not_supported`.
    pub fn service_tier_not_supported(member: &'static str) -> Self {
        Self::new(
            Code::ServiceTierNotSupported,
            "Service tiers cannot be chosen; leave the member out.",
        )
        .param(member)
    }

    /// 400 `idempotency_key_not_supported`.
    pub fn idempotency_key_not_supported() -> Self {
        Self::new(
            Code::IdempotencyKeyNotSupported,
            "`Idempotency-Key` is not accepted on model calls.",
        )
        .param("Idempotency-Key")
    }

    /// 400 `stateful_not_supported`.
    pub fn stateful_not_supported(message: impl Into<Message>) -> Self {
        Self::new(Code::StatefulNotSupported, message)
    }

    /// 400 `unsupported_parameter`.
    pub fn unsupported_parameter(
        member: impl Into<Cow<'static, str>>,
        message: impl Into<Message>,
    ) -> Self {
        Self::new(Code::UnsupportedParameter, message).param(member)
    }

    /// 401 `invalid_api_key`; one text for every reason, so that keys cannot be probed.
    pub fn invalid_api_key() -> Self {
        Self::new(
            Code::InvalidApiKey,
            "The API key is missing, unknown, disabled or expired.",
        )
    }

    /// 402 `insufficient_quota`.
    pub fn insufficient_quota() -> Self {
        Self::new(
            Code::InsufficientQuota,
            "The wallet's credits do not cover this call.",
        )
    }

    /// 402 `insufficient_quota` for a call whose estimate is covered, but whose worst case is not.
    pub fn insufficient_for_worst_case() -> Self {
        Self::new(
            Code::InsufficientQuota,
            "The wallet's credits cover the estimate of this call, but not what it and the calls in progress \
             could cost at most. Set a smaller output limit, or run fewer calls in parallel.",
        )
    }

    /// 402 `key_limit_reached`.
    pub fn key_limit_reached() -> Self {
        Self::new(
            Code::KeyLimitReached,
            "The key's spending limit does not cover this call.",
        )
    }

    /// 403 `wallet_disabled`.
    pub fn wallet_disabled() -> Self {
        Self::new(Code::WalletDisabled, "The wallet is disabled.")
    }

    /// 404 `model_not_found`.
    pub fn model_not_found(model: &str) -> Self {
        Self::new(
            Code::ModelNotFound,
            format!("The model `{model}` does not exist or cannot be called now."),
        )
        .param("model")
    }

    /// 404 `model_not_found` for a key that may call only some models. The answer does not show
    /// whether the model exists.
    pub fn model_not_allowed(model: &str) -> Self {
        Self::new(
            Code::ModelNotFound,
            format!("The model `{model}` does not exist or this key may not call it."),
        )
        .param("model")
    }

    /// 404 `task_not_found`. The answer does not show whether the task belongs to another wallet.
    pub fn task_not_found() -> Self {
        Self::new(Code::TaskNotFound, "The task does not exist.")
    }

    /// 404 `not_found`.
    pub fn not_found(message: impl Into<Message>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// 405 `method_not_allowed`.
    pub fn method_not_allowed() -> Self {
        Self::new(
            Code::MethodNotAllowed,
            "This path does not serve that method.",
        )
    }

    /// 426 `upgrade_required`.
    pub fn upgrade_required() -> Self {
        Self::new(
            Code::UpgradeRequired,
            "This path is a WebSocket: send an Upgrade request.",
        )
    }

    /// 426 `websocket_not_supported`. Clients that prefer a WebSocket switch to plain HTTP after
    /// this status. After a 404 they would retry the WebSocket.
    pub fn websocket_not_supported() -> Self {
        Self::new(
            Code::WebSocketNotSupported,
            "This path is not a WebSocket endpoint. Send a plain HTTP request.",
        )
    }

    /// 408 `request_timeout`.
    pub fn request_timeout() -> Self {
        Self::new(
            Code::RequestTimeout,
            "The request did not arrive in the time allowed.",
        )
    }

    /// 409 `task_running`.
    pub fn task_running() -> Self {
        Self::new(
            Code::TaskRunning,
            "The task is running and cannot be deleted.",
        )
    }

    /// 409 `task_cancelled`.
    pub fn task_cancelled() -> Self {
        Self::new(Code::TaskCancelled, "The task is cancelled already.")
    }

    /// 413 `request_too_large`.
    pub fn request_too_large(bytes_max: u64) -> Self {
        Self::new(
            Code::RequestTooLarge,
            format!("The request body is above the limit of {bytes_max} bytes."),
        )
    }

    /// 415 `unsupported_media_type`.
    pub fn unsupported_media_type(message: impl Into<Message>) -> Self {
        Self::new(Code::UnsupportedMediaType, message)
    }

    /// 429 `rate_limit_exceeded`. Set `retry_after` if waiting helps.
    pub fn rate_limit_exceeded(message: impl Into<Message>) -> Self {
        Self::new(Code::RateLimitExceeded, message)
    }

    /// 429 `concurrency_limit_exceeded`.
    pub fn concurrency_limit_exceeded() -> Self {
        Self::new(
            Code::ConcurrencyLimitExceeded,
            "The key has as many calls in flight as it may.",
        )
        .retry_soon()
    }

    /// 500 `internal_error`.
    pub fn internal() -> Self {
        Self::new(
            Code::InternalError,
            "The gateway failed to serve this request.",
        )
    }

    /// 503 `service_unavailable`: this gateway is too busy, or a part of it is down.
    pub fn unavailable(message: impl Into<Message>) -> Self {
        Self::new(Code::ServiceUnavailable, message)
    }

    /// `upstream_rejected` with the upstream's own 4xx status.
    pub fn upstream_rejected(status: u16, message: impl Into<Message>) -> Self {
        Self::new(Code::UpstreamRejected, message).with_status(status)
    }

    /// `context_length_exceeded` with the upstream's own 4xx status, and its message if a client
    /// may see it.
    pub fn context_length_exceeded(status: u16, upstream_message: Option<String>) -> Self {
        let message = upstream_message.map_or(
            "The request is longer than the model's context window.".into(),
            Message::from,
        );
        Self::new(Code::ContextLengthExceeded, message).with_status(status)
    }

    /// 502 `upstream_error`.
    pub fn upstream_error() -> Self {
        Self::new(
            Code::UpstreamError,
            "The model's upstream failed to answer this request.",
        )
    }

    /// 503 `upstream_overloaded`.
    pub fn upstream_overloaded() -> Self {
        Self::new(
            Code::UpstreamOverloaded,
            "The model's upstream has no room now; try again later.",
        )
    }

    /// 504 `upstream_timeout`.
    pub fn upstream_timeout() -> Self {
        Self::new(
            Code::UpstreamTimeout,
            "The model's upstream did not answer in the time allowed.",
        )
    }

    /// Replaces the status of the code.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Names the member that caused the error.
    #[must_use]
    pub fn param(mut self, param: impl Into<Cow<'static, str>>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Adds details for client libraries.
    #[must_use]
    pub fn detail(mut self, detail: &'static Detail) -> Self {
        self.detail = Some(detail);
        self
    }

    /// Sets when to retry, in whole seconds (see [`retry_after_seconds`]).
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after_s = Some(retry_after_seconds(wait));
        self
    }

    /// Asks the client to retry after the shortest pause.
    #[must_use]
    pub fn retry_soon(self) -> Self {
        self.retry_after(RETRY_SOON)
    }

    /// Overrides the client library's own decision about a retry.
    #[must_use]
    pub fn should_retry(mut self, should: bool) -> Self {
        self.should_retry = Some(should);
        self
    }

    /// Adds information for operators that clients must not see.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<str>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        self.status.unwrap_or_else(|| self.code.status())
    }

    /// The value of the `x-should-retry` header, if there is one. 401 and 403 advise against a
    /// retry by default, because some clients retry a rejected key in the hope of a fresh one.
    pub fn retry_advice(&self) -> Option<bool> {
        let is_final = matches!(self.status(), 401 | 403);
        self.should_retry.or(is_final.then_some(false))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        match &self.cause {
            Some(cause) => write!(f, " ({cause})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

//! Error codes, and the families of endpoints that share an envelope.

use std::fmt;

/// The error envelopes of the API, one for each family of endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Chat, Responses, embeddings, images, video-A, content-task, tasks, voice, models, balance.
    OpenAi,
    /// Messages.
    Messages,
    /// Generate Content and long-running predict.
    Google,
    /// Interactions.
    Interactions,
}

/// The kind of an error, as a stable code that clients match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The request is malformed.
    InvalidRequest,
    /// The model cannot be served on this endpoint.
    ModelNotSupported,
    /// The client tried to choose the route.
    RoutingNotSupported,
    /// The client asked for a paid service tier.
    ServiceTierNotSupported,
    /// `Idempotency-Key` on a model call.
    IdempotencyKeyNotSupported,
    /// The request would create or use a stored object.
    StatefulNotSupported,
    /// The model refuses this parameter.
    UnsupportedParameter,
    /// The key is missing, unknown, disabled or expired.
    InvalidApiKey,
    /// The wallet cannot pay for the call.
    InsufficientQuota,
    /// The key's own spending limit is reached.
    KeyLimitReached,
    /// The wallet is disabled.
    WalletDisabled,
    /// The model does not exist.
    ModelNotFound,
    /// The task does not exist, or belongs to another wallet.
    TaskNotFound,
    /// The path does not exist.
    NotFound,
    /// The path exists, the method does not.
    MethodNotAllowed,
    /// The path is a WebSocket endpoint, and the request is not an upgrade.
    UpgradeRequired,
    /// The path is not a WebSocket endpoint, and the request is an upgrade.
    WebSocketNotSupported,
    /// The client was too slow.
    RequestTimeout,
    /// The task is running and cannot be deleted.
    TaskRunning,
    /// The task is cancelled and cannot be deleted.
    TaskCancelled,
    /// The body exceeds its limit.
    RequestTooLarge,
    /// The body has a type or an encoding that this endpoint does not accept.
    UnsupportedMediaType,
    /// Too many requests or tokens per minute.
    RateLimitExceeded,
    /// Too many calls in flight.
    ConcurrencyLimitExceeded,
    /// A bug or a fault of the gateway.
    InternalError,
    /// This gateway is too busy, or a part of it is down.
    ServiceUnavailable,
    /// The upstream rejected the request itself.
    UpstreamRejected,
    /// The upstream rejected the request because it exceeds the model's context window.
    ContextLengthExceeded,
    /// The upstream failed, or rejected the gateway rather than the client.
    UpstreamError,
    /// The upstream is overloaded.
    UpstreamOverloaded,
    /// The upstream did not answer in time.
    UpstreamTimeout,
}

impl Code {
    /// Every code, for tests and documentation.
    pub const ALL: [Self; 31] = [
        Self::InvalidRequest,
        Self::ModelNotSupported,
        Self::RoutingNotSupported,
        Self::ServiceTierNotSupported,
        Self::IdempotencyKeyNotSupported,
        Self::StatefulNotSupported,
        Self::UnsupportedParameter,
        Self::InvalidApiKey,
        Self::InsufficientQuota,
        Self::KeyLimitReached,
        Self::WalletDisabled,
        Self::ModelNotFound,
        Self::TaskNotFound,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::UpgradeRequired,
        Self::WebSocketNotSupported,
        Self::RequestTimeout,
        Self::TaskRunning,
        Self::TaskCancelled,
        Self::RequestTooLarge,
        Self::UnsupportedMediaType,
        Self::RateLimitExceeded,
        Self::ConcurrencyLimitExceeded,
        Self::InternalError,
        Self::ServiceUnavailable,
        Self::UpstreamRejected,
        Self::ContextLengthExceeded,
        Self::UpstreamError,
        Self::UpstreamOverloaded,
        Self::UpstreamTimeout,
    ];

    /// Whether an upstream has caused the failure, and not the client or the gateway.
    pub const fn is_of_upstream(self) -> bool {
        matches!(
            self,
            Self::UpstreamRejected
                | Self::ContextLengthExceeded
                | Self::UpstreamError
                | Self::UpstreamOverloaded
                | Self::UpstreamTimeout
        )
    }

    /// The code in the envelope.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::ModelNotSupported => "model_not_supported",
            Self::RoutingNotSupported => "routing_not_supported",
            Self::ServiceTierNotSupported => "service_tier_not_supported",
            Self::IdempotencyKeyNotSupported => "idempotency_key_not_supported",
            Self::StatefulNotSupported => "stateful_not_supported",
            Self::UnsupportedParameter => "unsupported_parameter",
            Self::InvalidApiKey => "invalid_api_key",
            Self::InsufficientQuota => "insufficient_quota",
            Self::KeyLimitReached => "key_limit_reached",
            Self::WalletDisabled => "wallet_disabled",
            Self::ModelNotFound => "model_not_found",
            Self::TaskNotFound => "task_not_found",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::UpgradeRequired => "upgrade_required",
            Self::WebSocketNotSupported => "websocket_not_supported",
            Self::RequestTimeout => "request_timeout",
            Self::TaskRunning => "task_running",
            Self::TaskCancelled => "task_cancelled",
            Self::RequestTooLarge => "request_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::RateLimitExceeded => "rate_limit_exceeded",
            Self::ConcurrencyLimitExceeded => "concurrency_limit_exceeded",
            Self::InternalError => "internal_error",
            Self::ServiceUnavailable => "service_unavailable",
            Self::UpstreamRejected => "upstream_rejected",
            Self::ContextLengthExceeded => "context_length_exceeded",
            Self::UpstreamError => "upstream_error",
            Self::UpstreamOverloaded => "upstream_overloaded",
            Self::UpstreamTimeout => "upstream_timeout",
        }
    }

    /// The HTTP status of the code.
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidRequest
            | Self::ModelNotSupported
            | Self::RoutingNotSupported
            | Self::ServiceTierNotSupported
            | Self::IdempotencyKeyNotSupported
            | Self::StatefulNotSupported
            | Self::UnsupportedParameter
            | Self::UpstreamRejected
            | Self::ContextLengthExceeded => 400,
            Self::InvalidApiKey => 401,
            // 429 would make SDKs retry.
            Self::InsufficientQuota | Self::KeyLimitReached => 402,
            Self::WalletDisabled => 403,
            Self::ModelNotFound | Self::TaskNotFound | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::UpgradeRequired | Self::WebSocketNotSupported => 426,
            Self::RequestTimeout => 408,
            Self::TaskRunning | Self::TaskCancelled => 409,
            Self::RequestTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::RateLimitExceeded | Self::ConcurrencyLimitExceeded => 429,
            Self::InternalError => 500,
            Self::UpstreamError => 502,
            Self::ServiceUnavailable | Self::UpstreamOverloaded => 503,
            Self::UpstreamTimeout => 504,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

//! Refusals with the vendor's error messages, in the vendor's envelope.
//!
//! As with the vendor, the messages contain the upstream's model, key and address, which a gateway must remove.

use crate::fault::{ScriptError, Status};
use crate::reply::Reply;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;

const INVALID_REQUEST: &str = "invalid_request_error";
const NOT_FOUND: &str = "not_found_error";
const AUTHENTICATION: &str = "authentication_error";
const BILLING: &str = "billing_error";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) kind: &'static str,
    pub(super) message: String,
    /// Current clients read these details to distinguish errors of the same type.
    details: Option<Value>,
}

impl Refusal {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, message)
    }

    /// The refusal of an invalid member.
    pub(super) fn at(path: &str, why: impl AsRef<str>) -> Self {
        Self::invalid(format!("{path}: {}", why.as_ref()))
    }

    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
            details: None,
        }
    }

    pub(super) fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    pub(super) fn no_key() -> Self {
        let message = "x-api-key header is required";
        Self::new(StatusCode::UNAUTHORIZED, AUTHENTICATION, message)
    }

    pub(super) fn bad_key(key: &str) -> Self {
        let message = format!(
            "invalid x-api-key: {key}. See https://console.sim-upstream.example/settings/keys."
        );
        Self::new(StatusCode::UNAUTHORIZED, AUTHENTICATION, message)
    }

    pub(super) fn no_money() -> Self {
        let message = "Your credit balance is too low to access the sim-upstream.example API. \
                       Please go to Plans & Billing to upgrade or purchase credits.";
        Self::new(StatusCode::PAYMENT_REQUIRED, BILLING, message)
    }

    pub(super) fn no_such_model(name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, NOT_FOUND, format!("model: {name}"))
    }

    /// The refusal for an answer that the vendor's safety system blocks.
    pub(super) fn blocked() -> Self {
        Self::invalid("Output blocked by content filtering policy")
    }

    pub(super) fn bad_script(error: &ScriptError) -> Self {
        Self::at("model", format!("The simulator's script is wrong: {error}"))
    }

    /// The vendor's error for a status.
    pub(super) fn of_status(status: StatusCode, model: &str) -> Self {
        let (kind, message) = match status.as_u16() {
            401 => (AUTHENTICATION, "invalid x-api-key: sim-key-4711"),
            402 => (
                BILLING,
                "Your organization sim-org-4711 has no credits left.",
            ),
            403 => (
                "permission_error",
                "Workspace wrkspc_sim4711 does not have access to this model.",
            ),
            404 => (NOT_FOUND, "The model was not found."),
            408 | 504 => ("timeout_error", "The request timed out."),
            409 => ("conflict_error", "The resource was changed meanwhile."),
            413 => ("request_too_large", "Request exceeds the maximum size"),
            429 => (
                "rate_limit_error",
                "This request would exceed the rate limit for your organization (sim-org-4711) of \
                 2,000,000 input tokens per minute. For details, refer to: \
                 https://docs.sim-upstream.example/en/api/rate-limits.",
            ),
            503 | 529 => ("overloaded_error", "Overloaded"),
            500..=599 => (
                "api_error",
                "Internal server error. Please contact help@sim-upstream.example.",
            ),
            _ => (
                INVALID_REQUEST,
                "Your request req_sim4711q8 of Anthropic organization org-sim4711 could not be \
                 processed at edge-7.sim-upstream.com, see \
                 https://docs.sim-upstream.example/en/api/errors.",
            ),
        };
        Self::new(status, kind, format!("{message} (model {model})"))
    }
}

/// Writes the error object, for bodies and for streams.
pub(super) fn error_json(refusal: &Refusal, request_id: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Envelope<'a> {
        r#type: &'static str,
        error: Inner<'a>,
        request_id: &'a str,
    }
    #[derive(Serialize)]
    struct Inner<'a> {
        r#type: &'a str,
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<&'a Value>,
    }
    let envelope = Envelope {
        r#type: "error",
        error: Inner {
            r#type: refusal.kind,
            message: &refusal.message,
            details: refusal.details.as_ref(),
        },
        request_id,
    };
    // Strings and values always serialize.
    serde_json::to_vec(&envelope).unwrap_or_default()
}

pub(super) fn failure(refusal: &Refusal, request_id: &str) -> Reply {
    Reply::json(refusal.status, error_json(refusal, request_id))
}

/// The error for a status that a script asks for.
pub(super) fn of_status(status: &Status, model: &str, request_id: &str) -> Reply {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    failure(&Refusal::of_status(code, model), request_id).with_status_headers(status.retry_after_s)
}

/// The refusal of an unknown path or method below this protocol's path.
pub(crate) fn no_such_path(request_id: &str) -> Reply {
    let refusal = Refusal::new(StatusCode::NOT_FOUND, NOT_FOUND, "Not found");
    failure(&refusal, request_id)
}

pub(crate) fn too_large(request_id: &str) -> Reply {
    let refusal = Refusal::of_status(StatusCode::PAYLOAD_TOO_LARGE, "unknown");
    failure(&refusal, request_id)
}

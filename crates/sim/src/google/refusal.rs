//! Refusals of the two Google protocols, with the vendor's error messages.
//!
//! Each refusal has two envelopes. The envelope of Generate Content has a number, a label and details. The envelope of
//! Interactions has a word as its code. As with the vendor, the messages contain the upstream's model, project and
//! address, which a gateway must remove.

use super::one_line;
use crate::fault::{ScriptError, Status};
use crate::reply::Reply;
use http::{Method, StatusCode};
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// The error code in the envelope of Interactions.
    code: &'static str,
    pub(crate) message: String,
    /// The details in the envelope of Generate Content.
    details: Vec<Value>,
    /// Whether the error occurred after the stream had begun.
    pub(crate) late: bool,
}

impl Refusal {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code_of(status),
            message: message.into(),
            details: Vec::new(),
            late: false,
        }
    }

    /// Marks the error as one that the model reports after the stream has begun.
    pub(crate) fn late(mut self) -> Self {
        self.late = true;
        self
    }

    fn code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    fn detail(mut self, detail: Value) -> Self {
        self.details.push(detail);
        self
    }

    /// Adds the name of the invalid member.
    pub(crate) fn field(self, field: &str) -> Self {
        let description = self.message.clone();
        self.detail(json!({
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": field, "description": description}]
        }))
    }

    pub(super) fn no_key() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "Method doesn't allow unregistered callers (callers without established identity). \
             Please use API Key or other form of API consumer identity to call this API.",
        )
        .code("authentication")
    }

    /// The refusal of a wrong key, which this vendor reports as an invalid argument.
    pub(super) fn bad_key(key: &str) -> Self {
        Self::invalid(format!(
            "API key not valid. Please pass a valid API key. ({key})"
        ))
        .code("authentication")
        .detail(json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "API_KEY_INVALID",
            "domain": "googleapis.com",
            "metadata": {"service": "generativelanguage.sim-upstream.example"}
        }))
    }

    pub(super) fn no_money() -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "You exceeded your current quota, please check your plan and billing details. For \
             more information on this error, head to: \
             https://ai.sim-upstream.example/gemini-api/docs/rate-limits. * Quota exceeded for \
             metric: generativelanguage.sim-upstream.example/generate_content_paid_tier, limit: 0",
        )
        .code("quota_exceeded")
        .detail(json!({
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "sim-org-4711", "quotaDimensions": {"location": "global"}}]
        }))
    }

    pub(crate) fn no_such_path(path: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!("The requested URL {path} was not found on this server."),
        )
    }

    pub(crate) fn no_such_method(method: &Method, path: &str) -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            format!("The request method {method} is inappropriate for the URL {path}."),
        )
    }

    pub(crate) fn too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "Request payload size exceeds the limit: 134217728 bytes.",
        )
    }

    pub(crate) fn no_such_model(name: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!(
                "models/{name} is not found for API version v1beta, or is not supported for \
                 generateContent. Call ListModels to see the list of available models and their \
                 supported methods."
            ),
        )
        .code("model_not_found")
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// The refusal of an unknown parameter in Interactions.
    pub(crate) fn unknown_parameter(path: &str) -> Self {
        Self::invalid(format!("Unknown parameter '{path}'.")).code("parameter_unknown")
    }

    pub(crate) fn bad_script(error: &ScriptError) -> Self {
        Self::invalid(format!("The simulator's script is wrong: {error}.")).code("sim_bad_script")
    }

    /// The vendor's error for a status.
    pub(crate) fn of_status(status: StatusCode, model: &str) -> Self {
        let message = match status.as_u16() {
            400 => {
                "Request contains an invalid argument. Google project projects/sim-org-4711, \
                 service generativelanguage.sim-upstream.com, see \
                 https://ai.sim-upstream.example/gemini-api/docs/troubleshooting."
            }
            401 => {
                "Request had invalid authentication credentials. Expected OAuth 2 access token, \
                 login cookie or other valid authentication credential."
            }
            402 => "The prepaid balance of project sim-org-4711 is empty.",
            403 => "Permission denied on resource project sim-org-4711.",
            404 => "The model is not found for API version v1beta.",
            408 | 504 => "Deadline expired before operation could complete.",
            413 => "Request payload size exceeds the limit: 134217728 bytes.",
            429 => {
                "You exceeded your current quota. * Quota exceeded for metric: \
                 generativelanguage.sim-upstream.example/generate_content_requests, project: \
                 sim-org-4711"
            }
            503 | 529 => "The model is overloaded. Please try again later.",
            500..=599 => {
                "An internal error has occurred. Please retry or report in \
                 https://developers.sim-upstream.example/guide/troubleshooting, reference \
                 req_sim4711."
            }
            _ => "Unexpected status.",
        };
        Self::new(status, format!("{message} (models/{model})"))
    }

    /// The error for the status that a script asks for, with its retry delay.
    pub(crate) fn scripted(status: &Status, model: &str) -> Self {
        let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let refusal = Self::of_status(code, model);
        match status.retry_after_s {
            None => refusal,
            Some(seconds) => refusal.detail(json!({
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": format!("{seconds}s")
            })),
        }
    }

    pub(crate) fn generate_envelope(&self) -> Value {
        let mut error = json!({
            "code": self.status.as_u16(),
            "message": self.message,
            "status": label_of(self.status),
        });
        if !self.details.is_empty() {
            error["details"] = self.details.clone().into();
        }
        json!({ "error": error })
    }

    /// The envelope for Interactions: code and message.
    pub(crate) fn interactions_envelope(&self) -> Value {
        json!({"error": {"code": self.code, "message": self.message}})
    }
}

/// A refusal of a call that no protocol has parsed yet. The path determines the envelope.
pub(crate) fn failure_at(path: &str, refusal: &Refusal) -> Reply {
    let envelope = if path.contains("/interactions") {
        refusal.interactions_envelope()
    } else {
        refusal.generate_envelope()
    };
    one_line(refusal.status, &envelope)
}

fn label_of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 | 413 | 422 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        402 | 429 => "RESOURCE_EXHAUSTED",
        403 => "PERMISSION_DENIED",
        404 | 405 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        409 => "ABORTED",
        412 => "FAILED_PRECONDITION",
        499 => "CANCELLED",
        501 => "UNIMPLEMENTED",
        503 | 529 => "UNAVAILABLE",
        500..=599 => "INTERNAL",
        _ => "UNKNOWN",
    }
}

fn code_of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication",
        402 => "payment_required",
        403 => "permission_denied",
        404 | 405 => "not_found",
        408 | 504 => "gateway_timeout",
        409 => "aborted",
        416 => "out_of_range",
        429 => "rate_limit_exceeded",
        499 => "cancelled",
        501 => "unimplemented",
        503 | 529 => "service_unavailable",
        500..=599 => "api_error",
        _ => "invalid_request",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_two_envelopes() {
        let refusal = Refusal::bad_key("k");
        let generate = refusal.generate_envelope();
        let error = &generate["error"];
        assert_eq!(
            (&error["code"], &error["status"]),
            (&json!(400), &json!("INVALID_ARGUMENT"))
        );
        assert_eq!(error["details"][0]["reason"], "API_KEY_INVALID");
        let interactions = refusal.interactions_envelope();
        assert_eq!(interactions["error"]["code"], "authentication");
        assert_eq!(interactions["error"]["message"], error["message"]);
    }

    #[test]
    fn statuses_have_their_labels_and_codes() {
        for (status, label, code) in [
            (400, "INVALID_ARGUMENT", "invalid_request"),
            (401, "UNAUTHENTICATED", "authentication"),
            (402, "RESOURCE_EXHAUSTED", "payment_required"),
            (403, "PERMISSION_DENIED", "permission_denied"),
            (404, "NOT_FOUND", "not_found"),
            (409, "ABORTED", "aborted"),
            (429, "RESOURCE_EXHAUSTED", "rate_limit_exceeded"),
            (500, "INTERNAL", "api_error"),
            (501, "UNIMPLEMENTED", "unimplemented"),
            (503, "UNAVAILABLE", "service_unavailable"),
            (504, "DEADLINE_EXCEEDED", "gateway_timeout"),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!((label_of(status), code_of(status)), (label, code));
        }
    }
}

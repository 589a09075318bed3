//! Refusals of the `OpenAI` family, with the vendor's error messages.
//!
//! As with the vendor, the messages contain the upstream's model, key and address, which a gateway must remove.

use crate::fault::{ScriptError, Status};
use crate::media::MediaError;
use crate::protocol::ErrorReplies;
use crate::reply::Reply;
use http::{Method, StatusCode};
use serde::Serialize;

const INVALID_REQUEST: &str = "invalid_request_error";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) param: Option<String>,
    pub(crate) code: Option<&'static str>,
}

impl Refusal {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: INVALID_REQUEST,
            message: message.into(),
            param: None,
            code: None,
        }
    }

    pub(crate) fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(super) fn no_key() -> Self {
        Self::invalid(
            "You didn't provide an API key. You need to provide your API key in an Authorization \
             header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY). You can obtain an API \
             key from https://platform.sim-upstream.example/account/api-keys.",
        )
        .with_status(StatusCode::UNAUTHORIZED)
    }

    pub(super) fn bad_key(key: &str) -> Self {
        Self::invalid(format!(
            "Incorrect API key provided: {key}. You can find your API key at \
             https://platform.sim-upstream.example/account/api-keys."
        ))
        .code("invalid_api_key")
        .with_status(StatusCode::UNAUTHORIZED)
    }

    pub(super) fn no_money() -> Self {
        Self {
            kind: "insufficient_quota",
            ..Self::invalid(
                "You exceeded your current quota, please check your plan and billing details. For \
                 more information on this error, read the docs: \
                 https://platform.sim-upstream.example/docs/guides/error-codes/api-errors.",
            )
            .code("insufficient_quota")
            .with_status(StatusCode::TOO_MANY_REQUESTS)
        }
    }

    pub(crate) fn no_such_path(method: &Method, path: &str) -> Self {
        Self::invalid(format!("Invalid URL ({method} {path})")).with_status(StatusCode::NOT_FOUND)
    }

    pub(crate) fn no_such_method(method: &Method, path: &str) -> Self {
        Self::invalid(format!("Not allowed to {method} on {path}."))
            .with_status(StatusCode::METHOD_NOT_ALLOWED)
    }

    pub(crate) fn too_large() -> Self {
        Self::invalid("The request body is too large.").with_status(StatusCode::PAYLOAD_TOO_LARGE)
    }

    pub(crate) fn no_such_model(name: &str) -> Self {
        Self::invalid(format!(
            "The model `{name}` does not exist or you do not have access to it."
        ))
        .code("model_not_found")
        .with_status(StatusCode::NOT_FOUND)
    }

    /// The refusal of a prompt that the vendor's safety system blocks.
    pub(crate) fn blocked_prompt() -> Self {
        Self::invalid(
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy. \
             Please try again with a different prompt: \
             https://platform.sim-upstream.example/docs/guides/reasoning#advice-on-prompting",
        )
        .code("invalid_prompt")
    }

    pub(crate) fn bad_script(error: &ScriptError) -> Self {
        Self::invalid(format!("The simulator's script is wrong: {error}."))
            .param("model")
            .code("sim_bad_script")
    }

    /// The vendor's error for a status.
    pub(crate) fn of_status(status: StatusCode, model: &str) -> Self {
        let (kind, code, message) = match status.as_u16() {
            400 => (
                INVALID_REQUEST,
                None,
                "Your request req_sim4711q8 of OpenAI organization org-sim4711 could not be processed at edge-7.sim-upstream.com:8443 with key sk-sim4711abcd, see https://platform.sim-upstream.example/docs/errors.",
            ),
            401 => (
                INVALID_REQUEST,
                Some("invalid_api_key"),
                "Incorrect API key provided: sim-key-4711.",
            ),
            402 => (
                "insufficient_quota",
                Some("insufficient_quota"),
                "Your account sim-org-4711 has no credits left.",
            ),
            403 => (
                "permission_error",
                None,
                "Project `proj_sim4711` does not have access to this model.",
            ),
            404 => (
                INVALID_REQUEST,
                Some("model_not_found"),
                "The model does not exist or you do not have access to it.",
            ),
            408 => ("server_error", None, "The request timed out."),
            413 => (INVALID_REQUEST, None, "The request body is too large."),
            422 => (
                INVALID_REQUEST,
                None,
                "The request was well-formed but could not be followed.",
            ),
            429 => (
                "requests",
                Some("rate_limit_exceeded"),
                "Rate limit reached in organization sim-org-4711 on requests per min. Limit: 10000 / min.",
            ),
            503 | 529 => (
                "server_error",
                Some("overloaded"),
                "The engine is currently overloaded, please try again later.",
            ),
            500..=599 => (
                "server_error",
                None,
                "The server had an error while processing your request. Please contact help@sim-upstream.example with request ID req_sim4711.",
            ),
            _ => (INVALID_REQUEST, None, "Unexpected status."),
        };
        Self {
            status,
            kind,
            message: format!("{message} (model `{model}`)"),
            param: None,
            code,
        }
    }
}

pub(crate) fn bad_image(error: MediaError, path: impl Into<String>) -> Refusal {
    match error {
        MediaError::NoUrl => Refusal::invalid(
            "Failed to download image. Expected a valid URL, but got a value with an invalid \
             format.",
        )
        .code("invalid_image_url"),
        MediaError::NotBase64 => Refusal::invalid(
            "Expected a base64-encoded data URL with an image MIME type (e.g. \
             'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got an invalid base64-encoded \
             value.",
        )
        .code("invalid_base64_image"),
    }
    .param(path)
}

/// Writes the error object, for bodies and for streams.
pub(crate) fn error_json(refusal: &Refusal) -> Vec<u8> {
    #[derive(Serialize)]
    struct Envelope<'a> {
        error: Inner<'a>,
    }
    #[derive(Serialize)]
    struct Inner<'a> {
        message: &'a str,
        r#type: &'a str,
        param: Option<&'a str>,
        code: Option<&'a str>,
    }
    let envelope = Envelope {
        error: Inner {
            message: &refusal.message,
            r#type: refusal.kind,
            param: refusal.param.as_deref(),
            code: refusal.code,
        },
    };
    // Strings and nulls always serialize.
    serde_json::to_vec(&envelope).unwrap_or_default()
}

pub(crate) fn failure(refusal: &Refusal) -> Reply {
    Reply::json(refusal.status, error_json(refusal))
}

/// The error for a status that a script asks for.
pub(crate) fn of_status(status: &Status, model: &str) -> Reply {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    failure(&Refusal::of_status(code, model)).with_status_headers(status.retry_after_s)
}

/// The errors of endpoints without event streams. Endpoints with event streams use them for errors outside of a stream.
#[derive(Debug)]
pub(crate) struct JsonErrors;

impl ErrorReplies for JsonErrors {
    fn of_status(&self, status: &Status, model: &str) -> Reply {
        of_status(status, model)
    }

    fn error_in_200(&self, model: &str) -> Reply {
        let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, model);
        Reply::json(StatusCode::OK, error_json(&refusal))
    }

    fn bad_script(&self, error: &ScriptError) -> Reply {
        failure(&Refusal::bad_script(error))
    }
}

//! Writes refusals in the form of this cloud: a message in the body, and the name of the error in a header.

use crate::reply::{Content, Reply};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");

/// A refusal with this error name. In the header, a URL follows the name, because some of the vendor's services send
/// one.
pub(super) fn refusal(status: StatusCode, name: &str, message: &str) -> Reply {
    let mut reply = Reply::json(status, json!({ "message": message }).to_string());
    let with_address = format!("{name}:http://internal.sim-upstream.example/coral/");
    if let Ok(value) = HeaderValue::try_from(with_address) {
        reply.headers.push((ERROR_TYPE, value));
    }
    reply
}

/// The name of the error for a status.
pub(super) fn name_of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 | 403 => "AccessDeniedException",
        402 => "ServiceQuotaExceededException",
        404 => "ResourceNotFoundException",
        408 => "ModelTimeoutException",
        424 => "ModelErrorException",
        429 => "ThrottlingException",
        503 | 529 => "ServiceUnavailableException",
        500..=599 => "InternalServerException",
        _ => "ValidationException",
    }
}

/// Converts a refusal of another vendor's protocol to this cloud's form. Other replies stay unchanged.
pub(super) fn translated(reply: Reply) -> Reply {
    let Content::Whole(body) = &reply.content else {
        return reply;
    };
    if reply.status.is_success() || reply.status.is_redirection() {
        return reply;
    }
    let error: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = error["error"]["message"].as_str().unwrap_or("no message");
    let account = "arn:aws:bedrock:us-east-1:471147114711:inference-profile/sim";
    let status = match reply.status.as_u16() {
        401 => StatusCode::FORBIDDEN,
        402 => StatusCode::BAD_REQUEST,
        529 => StatusCode::SERVICE_UNAVAILABLE,
        _ => reply.status,
    };
    let mut translated = refusal(
        status,
        name_of(reply.status),
        &format!("{message} ({account})"),
    );
    translated.headers.extend(reply.headers);
    translated
}

pub(crate) fn no_such_path() -> Reply {
    let message = "Unable to determine service/operation name to be authorized";
    refusal(StatusCode::FORBIDDEN, "AccessDeniedException", message)
}

pub(crate) fn too_large() -> Reply {
    refusal(
        StatusCode::PAYLOAD_TOO_LARGE,
        "ValidationException",
        "Request body exceeds 25000000 bytes",
    )
}

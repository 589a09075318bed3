//! Writes refusals of the voice vendor in the short form that some of its endpoints use.

use crate::reply::Reply;
use http::StatusCode;
use serde_json::json;

/// A refusal in the short form, `{"code","error"}`.
pub(super) fn short(status: StatusCode, code: &str, message: &str) -> Reply {
    let body = json!({"code": code, "error": message});
    Reply::json(status, body.to_string())
}

pub(super) fn invalid(message: &str) -> Reply {
    short(
        StatusCode::BAD_REQUEST,
        "Client specified an invalid argument",
        message,
    )
}

pub(super) fn no_such_voice(voice: &str) -> Reply {
    short(
        StatusCode::NOT_FOUND,
        "Some requested entity was not found",
        &format!("The voice {voice} does not exist, see https://docs.sim-upstream.example/voice."),
    )
}

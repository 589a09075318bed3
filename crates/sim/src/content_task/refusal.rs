//! Writes refusals in the vendor's envelope.

use crate::fault::{ScriptError, Status};
use crate::openai;
use crate::protocol::{ErrorReplies, IncomingCall};
use crate::reply::Reply;
use http::StatusCode;
use serde_json::json;

/// An error in the vendor's form, whose message ends with the request id.
pub(super) fn failure(status: StatusCode, code: &str, message: &str, param: &str) -> Reply {
    let message =
        format!("{message} Request id: 021700004711000000000000000000000000ffffac150a4b1c2d3");
    let kind = match status {
        StatusCode::BAD_REQUEST => "BadRequest",
        StatusCode::UNAUTHORIZED => "Unauthorized",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        _ => "InternalServerError",
    };
    let error = json!({ "code": code, "message": message, "param": param, "type": kind });
    Reply::json(status, json!({ "error": error }).to_string())
}

pub(super) fn invalid(param: &str) -> Reply {
    let message = format!("The parameter `{param}` specified in the request is not valid.");
    failure(StatusCode::BAD_REQUEST, "InvalidParameter", &message, param)
}

pub(super) fn no_such_task() -> Reply {
    let message = "The specified task is not found.";
    failure(StatusCode::NOT_FOUND, "ResourceNotFound", message, "")
}

pub(super) fn authorise(call: &IncomingCall<'_>) -> Result<(), Reply> {
    let Err(refused) = openai::authorise(&call.parts.headers, call.settings) else {
        return Ok(());
    };
    let (status, code, message) = if refused.status == StatusCode::UNAUTHORIZED {
        let message = "The API key doesn't exist.";
        (StatusCode::UNAUTHORIZED, "AuthenticationError", message)
    } else {
        let message = "Your account sim-org-4711 has an overdue balance.";
        (StatusCode::FORBIDDEN, "AccountOverdueError", message)
    };
    Err(failure(status, code, message, ""))
}

/// The errors of all endpoints of this protocol.
pub(super) struct TaskErrors;

impl ErrorReplies for TaskErrors {
    fn of_status(&self, status: &Status, model: &str) -> Reply {
        let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let word = match status.code {
            400 => "InvalidParameter",
            401 => "AuthenticationError",
            403 => "AccountOverdueError",
            404 => "InvalidEndpointOrModel.NotFound",
            409 => "OperationDenied",
            429 => "ModelAccountRpmRateLimitExceeded",
            _ => "InternalServiceError",
        };
        let message = format!("The call of {model} was not served.");
        failure(code, word, &message, "").with_status_headers(status.retry_after_s)
    }

    fn error_in_200(&self, model: &str) -> Reply {
        let message = format!("The call of {model} was not served.");
        failure(StatusCode::OK, "InternalServiceError", &message, "")
    }

    fn bad_script(&self, error: &ScriptError) -> Reply {
        let message = format!("The simulator's script is wrong: {error}.");
        failure(StatusCode::BAD_REQUEST, "SimBadScript", &message, "model")
    }
}

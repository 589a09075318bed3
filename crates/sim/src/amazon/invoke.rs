//! Serves `invoke`: Messages requests without `model` and `stream`, because the path names the model and the form of
//! the answer.

use super::frame::{event, exception, padding, reframed};
use super::refusal::{name_of, no_such_path, refusal, translated};
use crate::call_context::CallContext;
use crate::fault::{ScriptError, Status};
use crate::messages::Messages;
use crate::percent::decoded;
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::{Content, Reply};
use crate::seal;
use bytes::Bytes;
use http::StatusCode;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

const VERSION: &str = "bedrock-2023-05-31";
pub(super) const EVENT_STREAM: &str = "application/vnd.amazon.eventstream";

/// A call whose credential, path and version have been checked.
#[derive(Debug)]
pub(crate) struct Invoke {
    messages: Messages,
    streamed: bool,
}

/// Whether the path belongs to this protocol.
pub(crate) fn is_target(path: &str) -> bool {
    target(path).is_some()
}

/// Splits a path into the model and whether the answer is a stream.
fn target(path: &str) -> Option<(String, bool)> {
    let (model, action) = path.strip_prefix("/model/")?.split_once('/')?;
    let streamed = match action {
        "invoke" => false,
        "invoke-with-response-stream" => true,
        _ => return None,
    };
    (!model.is_empty()).then(|| (decoded(model), streamed))
}

impl Protocol for Invoke {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        let path = call.parts.uri.path();
        let Some((model, streamed)) = target(path) else {
            return Err(no_such_path());
        };
        authorise(call)?;
        let invalid =
            |message: &str| refusal(StatusCode::BAD_REQUEST, "ValidationException", message);
        let mut request: Value = serde_json::from_slice(call.body)
            .map_err(|_| invalid("The request body could not be parsed as JSON."))?;
        let Some(body) = request.as_object_mut() else {
            return Err(invalid(
                "Malformed input request: expected type: JSONObject",
            ));
        };
        for stated in ["model", "stream"] {
            if body.contains_key(stated) {
                let message = format!("{stated}: Extra inputs are not permitted");
                return Err(invalid(&message));
            }
        }
        match body.remove("anthropic_version") {
            Some(version) if version == VERSION => {}
            Some(_) => return Err(invalid("anthropic_version: Invalid API version")),
            None => return Err(invalid("anthropic_version: Field required")),
        }
        if let Some(betas) = body.remove("anthropic_beta") {
            let names = betas.as_array().map(Vec::as_slice).unwrap_or_default();
            if names.is_empty()
                || names
                    .iter()
                    .any(|name| name.as_str().is_none_or(str::is_empty))
            {
                return Err(invalid("anthropic_beta: Input should be a list of names"));
            }
            if names.iter().any(|name| name == "unknown-beta") {
                return Err(invalid("invalid beta flag"));
            }
        }
        Ok(Self {
            messages: Messages::hosted(request, model, streamed, call.request_id),
            streamed,
        })
    }

    fn model(&self) -> &str {
        self.messages.model()
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        self.convert_reply(self.messages.answer(context))
    }

    fn errors(&self) -> &dyn ErrorReplies {
        self
    }
}

impl ErrorReplies for Invoke {
    fn of_status(&self, status: &Status, model: &str) -> Reply {
        self.convert_reply(self.messages.of_status(status, model))
    }

    fn error_in_200(&self, model: &str) -> Reply {
        self.convert_reply(self.messages.error_in_200(model))
    }

    fn empty_object(&self) -> Reply {
        self.convert_reply(self.messages.empty_object())
    }

    fn bad_script(&self, error: &ScriptError) -> Reply {
        self.convert_reply(self.messages.bad_script(error))
    }
}

impl Invoke {
    fn convert_reply(&self, reply: Reply) -> Reply {
        let reply = translated(reply);
        match reply.content {
            Content::Events(events) if self.streamed => Reply {
                content_type: EVENT_STREAM,
                content: Content::Events(Box::new(
                    events.filter_map(|event| reframed(&event, |data| Some(frame_of(data)))),
                )),
                ..reply
            },
            _ => reply,
        }
    }
}

/// Checks the key. In a signed request, `check_signature` has already replaced the signature with the id of its key.
pub(super) fn authorise(call: &IncomingCall<'_>) -> Result<(), Reply> {
    let header = call.parts.headers.get(AUTHORIZATION);
    let key = header
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
        .filter(|key| !key.is_empty());
    let Some(key) = key else {
        let message = "Missing Authentication Token";
        let name = "MissingAuthenticationTokenException";
        return Err(refusal(StatusCode::FORBIDDEN, name, message));
    };
    let settings = call.settings;
    if settings.refuses(key) {
        let message =
            format!("Authentication failed: API Key {key} of account 471147114711 is not valid");
        return Err(refusal(
            StatusCode::FORBIDDEN,
            "AccessDeniedException",
            &message,
        ));
    }
    if settings.has_no_credit(key) {
        let message = "Your account 471147114711 has exceeded its quota.";
        let name = "ServiceQuotaExceededException";
        return Err(refusal(StatusCode::BAD_REQUEST, name, message));
    }
    Ok(())
}

fn frame_of(data: &str) -> Bytes {
    let Ok(mut value) = serde_json::from_str::<Value>(data) else {
        return chunk(data);
    };
    match value["type"].as_str() {
        Some("error") => exception_of(&value["error"]),
        Some("message_stop") => {
            value["amazon-bedrock-invocationMetrics"] = json!({
                "inputTokenCount": 7,
                "outputTokenCount": 11,
                "invocationLatency": 421,
                "firstByteLatency": 101,
            });
            chunk(&value.to_string())
        }
        _ => chunk(data),
    }
}

/// Converts the model's error to the exception that ends the stream.
pub(super) fn exception_of(error: &Value) -> Bytes {
    let kind = error["type"].as_str().unwrap_or_default();
    let status = match kind {
        "overloaded_error" => StatusCode::SERVICE_UNAVAILABLE,
        "rate_limit_error" => StatusCode::TOO_MANY_REQUESTS,
        "invalid_request_error" => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let payload = json!({ "message": error["message"] });
    exception(
        &with_lower_first(name_of(status)),
        payload.to_string().as_bytes(),
    )
}

fn chunk(data: &str) -> Bytes {
    let payload = json!({ "bytes": seal::encode(data.as_bytes()), "p": padding(data.len()) });
    event("chunk", payload.to_string().as_bytes())
}

/// Names of exceptions in a stream begin with a lower-case letter.
fn with_lower_first(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_names_the_model_and_the_form_of_the_answer() {
        for (path, expected) in [
            ("/model/a.b-v1%3A0/invoke", Some(("a.b-v1:0", false))),
            (
                "/model/a:0/invoke-with-response-stream",
                Some(("a:0", true)),
            ),
            (
                "/model/arn%3Aaws%3A1%2Fx/invoke",
                Some(("arn:aws:1/x", false)),
            ),
            ("/model//invoke", None),
            ("/model/a/converse", None),
            ("/model/a/b/invoke", None),
            ("/v1/messages", None),
        ] {
            let expected = expected.map(|(model, streamed)| (model.to_owned(), streamed));
            assert_eq!(target(path), expected, "{path}");
        }
    }
}

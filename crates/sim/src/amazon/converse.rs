//! Serves the Converse protocol, which has one wire format for all models. Requests are converted to those of
//! `messages/`, and the answers are converted back.

use super::converse_answer::{Frames, answer};
use super::converse_request::read_request;
use super::invoke::{EVENT_STREAM, authorise};
use super::refusal::{no_such_path, refusal, translated};
use crate::call_context::CallContext;
use crate::fault::{ScriptError, Status};
use crate::messages::Messages;
use crate::percent::decoded;
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::{Content, Reply};
use http::StatusCode;

/// A call whose credential, path and body have been checked.
#[derive(Debug)]
pub(crate) struct Converse {
    messages: Messages,
    streamed: bool,
}

pub(crate) fn is_converse(path: &str) -> bool {
    target(path).is_some()
}

/// Splits a path into the model and whether the answer is a stream.
fn target(path: &str) -> Option<(String, bool)> {
    let (model, action) = path.strip_prefix("/model/")?.split_once('/')?;
    let streamed = match action {
        "converse" => false,
        "converse-stream" => true,
        _ => return None,
    };
    (!model.is_empty()).then(|| (decoded(model), streamed))
}

impl Protocol for Converse {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        let Some((model, streamed)) = target(call.parts.uri.path()) else {
            return Err(no_such_path());
        };
        authorise(call)?;
        let invalid = |why: String| {
            let message = format!("1 validation error detected: {why}");
            refusal(StatusCode::BAD_REQUEST, "ValidationException", &message)
        };
        if call.parts.headers.contains_key("anthropic-version") {
            return Err(invalid("unexpected header anthropic-version".to_owned()));
        }
        let request = read_request(call.body).map_err(invalid)?;
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

impl ErrorReplies for Converse {
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

impl Converse {
    fn convert_reply(&self, reply: Reply) -> Reply {
        let reply = translated(reply);
        let is_success = reply.status.is_success();
        match reply.content {
            Content::Events(events) if self.streamed => {
                let mut frames = Frames::default();
                let binary = events.filter_map(move |event| frames.framed(&event));
                Reply {
                    content_type: EVENT_STREAM,
                    content: Content::Events(Box::new(binary)),
                    ..reply
                }
            }
            Content::Whole(body) if is_success => Reply {
                content: Content::Whole(answer(&body)),
                ..reply
            },
            _ => reply,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_names_the_model_and_the_form_of_the_answer() {
        for (path, expected) in [
            ("/model/a.b-v1%3A0/converse", Some(("a.b-v1:0", false))),
            ("/model/a:0/converse-stream", Some(("a:0", true))),
            ("/model//converse", None),
            ("/model/a/invoke", None),
            ("/model/a/b/converse", None),
        ] {
            let expected = expected.map(|(model, streamed)| (model.to_owned(), streamed));
            assert_eq!(target(path), expected, "{path}");
        }
    }
}

//! Handles a call of this protocol, from the request body to the answer.

use super::answer::{Answer, whole};
use super::request;
use super::stream::{empty_objects, error_event, stream};
use crate::call_context::CallContext;
use crate::fault::{ScriptError, Status, SubstituteReply};
use crate::openai::{self, JsonErrors, Member, Refusal};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use serde_json::Value;

/// A call. Only its credential and its model have been checked so far.
#[derive(Debug)]
pub(crate) struct Responses {
    request: Value,
    model: String,
    streamed: bool,
}

impl Protocol for Responses {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        read(call).map_err(|refusal| openai::failure(&refusal))
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        let request = match request::read(&self.request, context) {
            Ok(request) => request,
            Err(refusal) => return openai::failure(&refusal),
        };
        let obfuscation = request.obfuscation;
        let answer = Answer::of(request, context);
        let swapped = context.script.substitute == Some(SubstituteReply::Swapped);
        let blocked = context.script.text.blocked.is_some();
        match (self.streamed == swapped, blocked) {
            (true, false) => whole(&answer, context),
            (false, false) => stream(answer, obfuscation, context),
            (true, true) => openai::failure(&Refusal::blocked_prompt()),
            // A stream has already begun when the vendor blocks the prompt.
            (false, true) => stream(
                answer.refused(Refusal::blocked_prompt()),
                obfuscation,
                context,
            ),
        }
    }

    fn errors(&self) -> &dyn ErrorReplies {
        self
    }
}

impl ErrorReplies for Responses {
    fn of_status(&self, status: &Status, model: &str) -> Reply {
        JsonErrors.of_status(status, model)
    }

    fn error_in_200(&self, model: &str) -> Reply {
        if self.streamed {
            return Reply::events(std::iter::once(error_event(model)));
        }
        JsonErrors.error_in_200(model)
    }

    fn empty_object(&self) -> Reply {
        if self.streamed {
            Reply::events(empty_objects())
        } else {
            JsonErrors.empty_object()
        }
    }

    fn bad_script(&self, error: &ScriptError) -> Reply {
        JsonErrors.bad_script(error)
    }
}

fn read(call: &IncomingCall<'_>) -> Result<Responses, Refusal> {
    openai::authorise(&call.parts.headers, call.settings)?;
    let request = openai::parse(call.body)?;
    let model = openai::model_of(&request)?.to_owned();
    let streamed = Member::object(&request, "")?
        .flag("stream")?
        .unwrap_or(false);
    Ok(Responses {
        request,
        model,
        streamed,
    })
}

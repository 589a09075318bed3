//! Handles a call of this protocol, from the request body to the answer.

use super::{answer, request, stream};
use crate::call_context::CallContext;
use crate::fault::{ScriptError, Status, SubstituteReply};
use crate::openai::{self, JsonErrors, Refusal};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use serde_json::Value;

/// A call. Only its credential and its model have been checked so far.
#[derive(Debug)]
pub(crate) struct Chat {
    request: Value,
    model: String,
}

impl Protocol for Chat {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        openai::authorise(&call.parts.headers, call.settings)
            .and_then(|()| openai::parse(call.body))
            .and_then(|request| {
                let model = openai::model_of(&request)?.to_owned();
                Ok(Self { request, model })
            })
            .map_err(|refusal| openai::failure(&refusal))
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        answer_to(&self.request, context).unwrap_or_else(|refusal| openai::failure(&refusal))
    }

    fn errors(&self) -> &dyn ErrorReplies {
        self
    }
}

impl ErrorReplies for Chat {
    fn of_status(&self, status: &Status, model: &str) -> Reply {
        JsonErrors.of_status(status, model)
    }

    fn error_in_200(&self, model: &str) -> Reply {
        stream::error_in_200(&self.request, model)
    }

    fn empty_object(&self) -> Reply {
        stream::empty_object(&self.request)
    }

    fn bad_script(&self, error: &ScriptError) -> Reply {
        JsonErrors.bad_script(error)
    }
}

fn answer_to(request: &Value, context: &CallContext<'_>) -> Result<Reply, Refusal> {
    let request = request::read(request, context)?;
    let swapped = context.script.substitute == Some(SubstituteReply::Swapped);
    match (request.streaming.wanted, swapped) {
        (true, false) | (false, true) => stream::stream(&request, context),
        (false, false) | (true, true) => answer::whole(&request, context),
    }
}

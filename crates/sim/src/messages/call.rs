//! Handles a call of this protocol, from the request body to the answer.

use super::answer::Answer;
use super::auth::{Version, authorise, version};
use super::member::Member;
use super::message::whole;
use super::refusal::{self, Refusal, error_json, failure};
use super::request;
use super::stream::{empty_objects, error_event, stream};
use crate::call_context::CallContext;
use crate::fault::{ScriptError, Status, SubstituteReply};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use http::StatusCode;
use serde_json::Value;

/// A call. Only its credential and its model have been checked so far.
#[derive(Debug)]
pub(crate) struct Messages {
    request: Value,
    model: String,
    version: Version,
    streamed: bool,
    request_id: String,
}

impl Messages {
    /// Creates a call that comes through a cloud. The path named the model and the form of the answer, and the cloud
    /// has checked the credential.
    pub(crate) fn hosted(request: Value, model: String, streamed: bool, request_id: &str) -> Self {
        Self {
            request,
            model,
            version: Version::Old,
            streamed,
            request_id: request_id.to_owned(),
        }
    }
}

impl Protocol for Messages {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        read(call).map_err(|refusal| failure(&refusal, call.request_id))
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        let request = match request::read(&self.request, self.version, context) {
            Ok(request) => request,
            Err(refusal) => return failure(&refusal, &self.request_id),
        };
        let answer = Answer::of(&request, context);
        let swapped = context.script.substitute == Some(SubstituteReply::Swapped);
        let blocked = context.script.text.blocked.is_some();
        match (self.streamed == swapped, blocked) {
            (true, false) => whole(&answer, context),
            (true, true) => failure(&Refusal::blocked(), &self.request_id),
            (false, _) => stream(answer, context, &self.request_id),
        }
    }

    fn errors(&self) -> &dyn ErrorReplies {
        self
    }
}

impl ErrorReplies for Messages {
    fn of_status(&self, status: &Status, model: &str) -> Reply {
        refusal::of_status(status, model, &self.request_id)
    }

    fn error_in_200(&self, model: &str) -> Reply {
        let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, model);
        if self.streamed {
            Reply::events(std::iter::once(error_event(&refusal, &self.request_id)))
        } else {
            Reply::json(StatusCode::OK, error_json(&refusal, &self.request_id))
        }
    }

    fn empty_object(&self) -> Reply {
        if self.streamed {
            Reply::events(empty_objects())
        } else {
            Reply::json(StatusCode::OK, "{}")
        }
    }

    fn bad_script(&self, error: &ScriptError) -> Reply {
        failure(&Refusal::bad_script(error), &self.request_id)
    }
}

fn read(call: &IncomingCall<'_>) -> Result<Messages, Refusal> {
    authorise(&call.parts.headers, call.settings)?;
    let version = version(&call.parts.headers)?;
    let request: Value = serde_json::from_slice(call.body).map_err(|error| {
        Refusal::invalid(format!("The request body is not valid JSON: {error}"))
    })?;
    let body = Member::object(&request, "")?;
    let model = body.required_text("model")?.to_owned();
    if model.is_empty() {
        return Err(Refusal::at(
            "model",
            "String should have at least 1 character",
        ));
    }
    Ok(Messages {
        model,
        version,
        streamed: body.flag("stream")?.unwrap_or(false),
        request_id: call.request_id.to_owned(),
        request,
    })
}

//! Handles a call of this protocol, from the request body to the answer.

use super::{answer, request, stream};
use crate::call_context::CallContext;
use crate::fault::{ScriptError, Status, SubstituteReply};
use crate::google::{ErrorForm, Refusal, authorise};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use http::StatusCode;
use serde_json::Value;

/// A call. Only its credential and its model have been checked so far.
#[derive(Debug)]
pub(crate) struct Interactions {
    request: Value,
    model: String,
    streamed: bool,
}

impl Protocol for Interactions {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        authorise(call.parts, call.settings)
            .and_then(|()| request::parse(call.body))
            .and_then(|request| {
                let model = request::model_of(&request)?.to_owned();
                let streamed = request.get("stream") == Some(&Value::Bool(true));
                Ok(Self {
                    request,
                    model,
                    streamed,
                })
            })
            .map_err(|refusal| ErrorForm::Interactions.failure(&refusal))
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        let swapped = context.script.substitute == Some(SubstituteReply::Swapped);
        let answered = request::read(&self.request, context).and_then(|request| {
            if self.streamed == swapped {
                answer::whole(&request, context)
            } else {
                stream::stream(&request, context)
            }
        });
        answered.unwrap_or_else(|refusal| {
            if refusal.late && self.streamed {
                stream::late_failure(&refusal)
            } else {
                ErrorForm::Interactions.failure(&refusal)
            }
        })
    }

    fn errors(&self) -> &dyn ErrorReplies {
        self
    }
}

impl ErrorReplies for Interactions {
    fn of_status(&self, status: &Status, model: &str) -> Reply {
        ErrorForm::Interactions.of_status(status, model)
    }

    fn error_in_200(&self, model: &str) -> Reply {
        if self.streamed {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            stream::only_error(&Refusal::of_status(status, model))
        } else {
            ErrorForm::Interactions.error_in_200(model)
        }
    }

    fn empty_object(&self) -> Reply {
        if self.streamed {
            stream::only_empty()
        } else {
            ErrorForm::Interactions.empty_object()
        }
    }

    fn bad_script(&self, error: &ScriptError) -> Reply {
        ErrorForm::Interactions.bad_script(error)
    }
}

//! Handles a call of this protocol, from the request body to the answer.

use super::path::{Action, Form, target};
use super::{answer, request, stream};
use crate::call_context::CallContext;
use crate::fault::{ScriptError, Status, SubstituteReply};
use crate::google::{Refusal, authorise, indented};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use http::StatusCode;
use serde_json::{Value, json};

/// A call. Only its credential and its model have been checked so far.
#[derive(Debug)]
pub(crate) struct Generate {
    request: Value,
    model: String,
    form: Form,
}

impl Protocol for Generate {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        let path = call.parts.uri.path();
        let no_path = || Refusal::no_such_path(path);
        let (model, action) = target(path)
            .ok_or_else(no_path)
            .map_err(|why| whole(&why))?;
        let query = call.parts.uri.query().unwrap_or_default();
        let form = match action {
            Action::Whole => Form::Whole,
            Action::Stream if query.split('&').any(|pair| pair == "alt=sse") => Form::Events,
            Action::Stream => Form::Array,
        };
        authorise(call.parts, call.settings)
            .and_then(|()| request::parse(call.body))
            .map(|request| Self {
                request,
                model,
                form,
            })
            .map_err(|refusal| failure(&refusal, form))
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        let swapped = context.script.substitute == Some(SubstituteReply::Swapped);
        let form = match (self.form, swapped) {
            (form, false) => form,
            (Form::Whole, true) => Form::Events,
            (Form::Events | Form::Array, true) => Form::Whole,
        };
        let answered = request::read(&self.request, context).and_then(|request| match form {
            Form::Whole => answer::whole(&request, context),
            Form::Events | Form::Array => stream::stream(&request, context, form),
        });
        answered.unwrap_or_else(|refusal| failure(&refusal, self.form))
    }

    fn errors(&self) -> &dyn ErrorReplies {
        self
    }
}

impl ErrorReplies for Generate {
    fn of_status(&self, status: &Status, model: &str) -> Reply {
        failure(&Refusal::scripted(status, model), self.form)
            .with_status_headers(status.retry_after_s)
    }

    fn error_in_200(&self, model: &str) -> Reply {
        let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, model);
        match self.form {
            Form::Whole => indented(StatusCode::OK, &refusal.generate_envelope()),
            form => stream::single_event(form, &refusal.generate_envelope()),
        }
    }

    fn empty_object(&self) -> Reply {
        match self.form {
            Form::Whole => indented(StatusCode::OK, &json!({})),
            form => stream::single_event(form, &json!({})),
        }
    }

    fn bad_script(&self, error: &ScriptError) -> Reply {
        failure(&Refusal::bad_script(error), self.form)
    }
}

/// Writes a refusal with its own status. If the caller asked for an array, the refusal is its only item.
fn failure(refusal: &Refusal, form: Form) -> Reply {
    match form {
        Form::Whole | Form::Events => whole(refusal),
        Form::Array => indented(
            refusal.status,
            &Value::Array(vec![refusal.generate_envelope()]),
        ),
    }
}

fn whole(refusal: &Refusal) -> Reply {
    indented(refusal.status, &refusal.generate_envelope())
}

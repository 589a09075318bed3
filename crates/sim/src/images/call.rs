//! Handles a call of these endpoints, from the request body to the answer.

use super::{answer, form, request, stream};
use crate::call_context::CallContext;
use crate::fault::{ScriptError, Status, SubstituteReply};
use crate::openai::{self, JsonErrors, Refusal};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use http::header::CONTENT_TYPE;
use serde_json::Value;

/// A request for new pictures.
#[derive(Debug)]
pub(crate) struct GenerationsCall(Call);

/// A request for edits of given pictures.
#[derive(Debug)]
pub(crate) struct EditsCall(Call);

/// A call. Only its credential and its model have been checked so far.
#[derive(Debug)]
struct Call {
    fields: Value,
    form: Option<form::Form>,
    model: String,
    edits: bool,
}

impl Call {
    fn read(call: &IncomingCall<'_>, edits: bool) -> Result<Self, Reply> {
        openai::authorise(&call.parts.headers, call.settings)
            .and_then(|()| Self::parse(call, edits))
            .map_err(|refusal| openai::failure(&refusal))
    }

    fn parse(call: &IncomingCall<'_>, edits: bool) -> Result<Self, Refusal> {
        let content_type = call.parts.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default();
        let (fields, form) = if edits && content_type.starts_with("multipart/form-data") {
            let mut form = form::read(content_type, call.body)
                .ok_or_else(|| Refusal::invalid("The form could not be read."))?;
            (std::mem::take(&mut form.fields), Some(form))
        } else {
            (openai::parse(call.body)?, None)
        };
        let model = openai::model_of(&fields)?.to_owned();
        Ok(Self {
            fields,
            form,
            model,
            edits,
        })
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        let spec = match request::read(&self.fields, self.form.as_ref(), self.edits, context) {
            Ok(spec) => spec,
            Err(refusal) => return openai::failure(&refusal),
        };
        let swapped = context.script.substitute == Some(SubstituteReply::Swapped);
        if spec.stream == swapped {
            answer::whole(&spec, context)
        } else {
            stream::stream(&spec, self.edits, context)
        }
    }

    fn wants_stream(&self) -> bool {
        self.fields.get("stream") == Some(&Value::Bool(true))
    }
}

impl ErrorReplies for Call {
    fn of_status(&self, status: &Status, model: &str) -> Reply {
        JsonErrors.of_status(status, model)
    }

    fn error_in_200(&self, model: &str) -> Reply {
        if self.wants_stream() {
            return stream::only_error(model);
        }
        JsonErrors.error_in_200(model)
    }

    fn bad_script(&self, error: &ScriptError) -> Reply {
        JsonErrors.bad_script(error)
    }
}

/// Implements the protocol for one endpoint. `$edits` says whether it is the endpoint for edits.
macro_rules! protocol {
    ($name:ident, $edits:literal) => {
        impl Protocol for $name {
            fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
                Call::read(call, $edits).map(Self)
            }

            fn model(&self) -> &str {
                &self.0.model
            }

            fn answer(&self, context: &CallContext<'_>) -> Reply {
                self.0.answer(context)
            }

            fn errors(&self) -> &dyn ErrorReplies {
                &self.0
            }
        }
    };
}

protocol!(GenerationsCall, false);
protocol!(EditsCall, true);

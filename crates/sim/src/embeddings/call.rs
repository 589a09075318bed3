//! A call of this protocol, from the request body to the answer.

use super::{answer, request};
use crate::call_context::CallContext;
use crate::fault::{ScriptError, Status};
use crate::openai::{self, Refusal};
use crate::protocol::{Incoming, Protocol};
use crate::reply::Reply;
use http::StatusCode;
use serde_json::Value;

/// A call of which only the credential and the model have been checked.
#[derive(Debug)]
pub(crate) struct Embeddings {
    request: Value,
    model: String,
}

impl Protocol for Embeddings {
    fn read(call: &Incoming<'_>) -> Result<Self, Reply> {
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
        match request::read(&self.request, context) {
            Ok(request) => answer::whole(&request, context),
            Err(refusal) => openai::failure(&refusal),
        }
    }

    fn of_status(&self, status: &Status, model: &str) -> Reply {
        openai::of_status(status, model)
    }

    fn error_in_200(&self, model: &str) -> Reply {
        let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, model);
        Reply::json(StatusCode::OK, openai::error_json(&refusal))
    }

    fn empty_object(&self) -> Reply {
        Reply::json(StatusCode::OK, "{}")
    }

    fn bad_script(&self, error: &ScriptError) -> Reply {
        openai::failure(&Refusal::bad_script(error))
    }
}

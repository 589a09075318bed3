//! Handles a call of this protocol, from the request body to the answer.

use super::{answer, request};
use crate::call_context::CallContext;
use crate::openai::{self};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use serde_json::Value;

/// A call. Only its credential and its model have been checked so far.
#[derive(Debug)]
pub(crate) struct Embeddings {
    request: Value,
    model: String,
}

impl Protocol for Embeddings {
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
        match request::read(&self.request, context) {
            Ok(request) => answer::whole(&request, context),
            Err(refusal) => openai::failure(&refusal),
        }
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &openai::JsonErrors
    }
}

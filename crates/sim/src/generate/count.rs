//! Serves `:countTokens`, for contents alone or for a whole request that repeats the model.

use super::request;
use crate::call_context::CallContext;
use crate::google::{ErrorForm, Field, Refusal, Spelling, authorise, indented};
use crate::percent::decoded;
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use crate::tokens::count_in;
use http::StatusCode;
use serde_json::{Value, json};

const KNOWN: [&str; 2] = ["contents", "generate_content_request"];
const WRAPPED: [&str; 8] = [
    "model",
    "contents",
    "system_instruction",
    "tools",
    "tool_config",
    "generation_config",
    "safety_settings",
    "cached_content",
];

/// A call. Only its credential and its model have been checked so far.
#[derive(Debug)]
pub(crate) struct Count {
    request: Value,
    model: String,
}

/// Whether a path belongs to this endpoint.
pub(crate) fn is_count(path: &str) -> bool {
    target(path).is_some()
}

fn target(path: &str) -> Option<String> {
    let rest = ["/v1beta/models/", "/v1/models/"]
        .iter()
        .find_map(|prefix| path.strip_prefix(prefix))?;
    let model = rest.strip_suffix(":countTokens")?;
    (!model.is_empty()).then(|| decoded(model))
}

impl Protocol for Count {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        let path = call.parts.uri.path();
        let model = target(path)
            .ok_or_else(|| ErrorForm::Indented.failure(&Refusal::no_such_path(path)))?;
        authorise(call.parts, call.settings)
            .and_then(|()| request::parse(call.body))
            .map(|request| Self { request, model })
            .map_err(|refusal| ErrorForm::Indented.failure(&refusal))
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, _: &CallContext<'_>) -> Reply {
        match self.count() {
            Ok(tokens) => indented(
                StatusCode::OK,
                &json!({
                    "totalTokens": tokens,
                    "promptTokensDetails": [{ "modality": "TEXT", "tokenCount": tokens }],
                }),
            ),
            Err(refusal) => ErrorForm::Indented.failure(&refusal),
        }
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &ErrorForm::Indented
    }
}

impl Count {
    fn count(&self) -> Result<u64, Refusal> {
        let body = Field::object(&self.request, "", Spelling::Both, &KNOWN)?;
        let Some(wrapped) = body.child("generate_content_request", &WRAPPED)? else {
            return Ok(count_in(body.required("contents")?));
        };
        let model = wrapped.required_text("model")?;
        if model != format!("models/{}", self.model) {
            let message = "generate_content_request.model must be the model of the path.";
            return Err(Refusal::invalid(message));
        }
        wrapped.required("contents")?;
        let read = ["contents", "system_instruction", "tools"];
        let texts = read.into_iter().filter_map(|name| wrapped.get(name));
        Ok(texts.map(count_in).sum())
    }
}

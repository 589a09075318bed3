//! Serves `POST /v1/responses/input_tokens`. Accepts only the members that belong to a prompt.

use crate::call_context::CallContext;
use crate::openai::{self, Member, Refusal};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use crate::tokens::count_in;
use http::StatusCode;
use serde_json::{Value, json};

const KNOWN: [&str; 11] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "previous_response_id",
    "conversation",
    "reasoning",
    "text",
    "truncation",
];

/// A call. Only its credential and its model have been checked so far.
#[derive(Debug)]
pub(crate) struct Count {
    request: Value,
    model: String,
}

impl Protocol for Count {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        read(call).map_err(|refusal| openai::failure(&refusal))
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, _: &CallContext<'_>) -> Reply {
        match count(&self.request) {
            Ok(tokens) => {
                let answer = json!({ "object": "response.input_tokens", "input_tokens": tokens });
                Reply::json(StatusCode::OK, answer.to_string())
            }
            Err(refusal) => openai::failure(&refusal),
        }
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &openai::JsonErrors
    }
}

fn read(call: &IncomingCall<'_>) -> Result<Count, Refusal> {
    openai::authorise(&call.parts.headers, call.settings)?;
    let request = openai::parse(call.body)?;
    let model = openai::model_of(&request)?.to_owned();
    Ok(Count { request, model })
}

fn count(request: &Value) -> Result<u64, Refusal> {
    let body = Member::object(request, "")?;
    body.refuse_unknown(&KNOWN)?;
    let read = ["input", "instructions", "tools"];
    let texts = read.into_iter().filter_map(|name| body.get(name));
    Ok(texts.map(count_in).sum())
}

//! Serves `POST /v1/messages/count_tokens`. Accepts only the members that belong to a prompt.

use super::auth::{authorise, version};
use super::member::Member;
use super::refusal::{self, Refusal, error_json, failure};
use crate::call_context::CallContext;
use crate::fault::{ScriptError, Status};
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use crate::tokens::count_in;
use http::StatusCode;
use serde_json::{Value, json};

const KNOWN: [&str; 10] = [
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "cache_control",
    "context_management",
    "mcp_servers",
];

/// A call. Only its credential and its model have been checked so far.
#[derive(Debug)]
pub(crate) struct Count {
    request: Value,
    model: String,
    request_id: String,
}

impl Protocol for Count {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        read(call).map_err(|refusal| failure(&refusal, call.request_id))
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, _: &CallContext<'_>) -> Reply {
        match count(&self.request) {
            Ok(tokens) => {
                let answer = json!({ "input_tokens": tokens });
                Reply::json(StatusCode::OK, answer.to_string())
            }
            Err(refusal) => failure(&refusal, &self.request_id),
        }
    }

    fn errors(&self) -> &dyn ErrorReplies {
        self
    }
}

impl ErrorReplies for Count {
    fn of_status(&self, status: &Status, model: &str) -> Reply {
        refusal::of_status(status, model, &self.request_id)
    }

    fn error_in_200(&self, model: &str) -> Reply {
        let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, model);
        Reply::json(StatusCode::OK, error_json(&refusal, &self.request_id))
    }

    fn empty_object(&self) -> Reply {
        Reply::json(StatusCode::OK, "{}")
    }

    fn bad_script(&self, error: &ScriptError) -> Reply {
        failure(&Refusal::bad_script(error), &self.request_id)
    }
}

fn read(call: &IncomingCall<'_>) -> Result<Count, Refusal> {
    authorise(&call.parts.headers, call.settings)?;
    version(&call.parts.headers)?;
    let request: Value = serde_json::from_slice(call.body).map_err(|error| {
        Refusal::invalid(format!("The request body is not valid JSON: {error}"))
    })?;
    let model = Member::object(&request, "")?.required_text("model")?;
    Ok(Count {
        model: model.to_owned(),
        request_id: call.request_id.to_owned(),
        request,
    })
}

fn count(request: &Value) -> Result<u64, Refusal> {
    let body = Member::object(request, "")?;
    body.refuse_unknown(&KNOWN)?;
    body.required("messages")?;
    let read = ["messages", "system", "tools"];
    let texts = read.into_iter().filter_map(|name| body.get(name));
    Ok(texts.map(count_in).sum())
}

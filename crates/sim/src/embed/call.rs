//! Handles a call of this protocol, from the request body to the answer.

use super::request;
use crate::call_context::CallContext;
use crate::fault::UsageFault;
use crate::google::{ErrorForm, Refusal, authorise, indented};
use crate::percent::decoded;
use crate::protocol::{ErrorReplies, IncomingCall, Protocol};
use crate::reply::Reply;
use crate::tokens::count_tokens;
use crate::vector;
use http::StatusCode;
use serde_json::{Value, json};

/// A call. Only its credential and its model have been checked so far.
#[derive(Debug)]
pub(crate) struct Embed {
    request: Value,
    model: String,
    batch: bool,
}

/// Whether a path belongs to this protocol.
pub(crate) fn is_target(path: &str) -> bool {
    target(path).is_some()
}

fn target(path: &str) -> Option<(String, bool)> {
    let rest = ["/v1beta/models/", "/v1/models/"]
        .iter()
        .find_map(|prefix| path.strip_prefix(prefix))?;
    let (model, action) = rest.rsplit_once(':')?;
    let batch = match action {
        "embedContent" => false,
        "batchEmbedContents" => true,
        _ => return None,
    };
    (!model.is_empty()).then(|| (decoded(model), batch))
}

impl Protocol for Embed {
    fn read(call: &IncomingCall<'_>) -> Result<Self, Reply> {
        let path = call.parts.uri.path();
        let (model, batch) = target(path)
            .ok_or_else(|| ErrorForm::Indented.failure(&Refusal::no_such_path(path)))?;
        authorise(call.parts, call.settings)
            .and_then(|()| request::parse(call.body))
            .map(|request| Self {
                request,
                model,
                batch,
            })
            .map_err(|refusal| ErrorForm::Indented.failure(&refusal))
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn answer(&self, context: &CallContext<'_>) -> Reply {
        let contents = match request::read(&self.request, self.batch, &self.model, context) {
            Ok(contents) => contents,
            Err(refusal) => return ErrorForm::Indented.failure(&refusal),
        };
        let mut vectors = contents
            .iter()
            .map(|content| json!({ "values": vector::of_text(&content.text, content.dimensions) }));
        let mut answer = if self.batch {
            json!({ "embeddings": vectors.collect::<Vec<_>>() })
        } else {
            json!({ "embedding": vectors.next() })
        };
        // Usage is reported only if a script asks for it, because older models of this protocol report none.
        if context.script.usage == UsageFault::Unasked {
            let tokens: u64 = contents.iter().map(|it| count_tokens(&it.text)).sum();
            answer["usageMetadata"] =
                json!({ "promptTokenCount": tokens, "totalTokenCount": tokens });
        }
        indented(StatusCode::OK, &answer)
    }

    fn errors(&self) -> &dyn ErrorReplies {
        &ErrorForm::Indented
    }
}

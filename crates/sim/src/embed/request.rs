//! Reads a request and applies the vendor's checks.

use crate::call_context::CallContext;
use crate::catalog;
use crate::google::{Field, Refusal, Spelling};
use serde_json::Value;

const DIMENSIONS: usize = 768;
const DIMENSIONS_MAX: i64 = 3072;
const BATCH_MAX: usize = 100;
const ONE: [&str; 6] = [
    "model",
    "content",
    "task_type",
    "title",
    "output_dimensionality",
    "embed_content_config",
];

/// One content item and the length of its vector.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) text: String,
    pub(super) dimensions: usize,
}

pub(super) fn parse(body: &[u8]) -> Result<Value, Refusal> {
    match serde_json::from_slice(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) | Err(_) => Err(Refusal::invalid(
            "Invalid JSON payload received. Expected an object.",
        )),
    }
}

/// Reads the content items. `named` is the model in the path, including its script.
pub(super) fn read(
    body: &Value,
    batch: bool,
    named: &str,
    context: &CallContext<'_>,
) -> Result<Vec<Content>, Refusal> {
    if !catalog::exists(context.name) {
        return Err(Refusal::no_such_model(context.name));
    }
    if !batch {
        let one = Field::object(body, "", Spelling::Both, &ONE)?;
        return Ok(vec![content(&one, named)?]);
    }
    let top = Field::object(body, "", Spelling::Both, &["requests"])?;
    let requests = top.children("requests", &ONE)?;
    if requests.is_empty() || requests.len() > BATCH_MAX {
        return Err(Refusal::invalid(format!(
            "BatchEmbedContentsRequest.requests: between 1 and {BATCH_MAX} requests are allowed."
        ))
        .field("requests"));
    }
    requests
        .iter()
        .map(|one| {
            // Each request of a batch must name the model.
            one.required_text("model")?;
            content(one, named)
        })
        .collect()
}

fn content(one: &Field<'_>, named: &str) -> Result<Content, Refusal> {
    if let Some(model) = one.text("model")?
        && model.strip_prefix("models/") != Some(named)
    {
        let path = one.path("model");
        let message = format!("Model in request '{model}' is not the model in the path.");
        return Err(Refusal::invalid(message).field(&path));
    }
    let inner = one
        .child("content", &["parts", "role"])?
        .ok_or_else(|| Refusal::invalid("content is required").field(&one.path("content")))?;
    let mut text = String::new();
    for part in inner.children("parts", &["text"])? {
        text.push_str(part.required_text("text")?);
    }
    if text.is_empty() {
        return Err(Refusal::invalid("content contains an empty Part.").field(&one.path("content")));
    }
    let dimensions = one.integer("output_dimensionality", 1, DIMENSIONS_MAX)?;
    let dimensions = dimensions.and_then(|it| usize::try_from(it).ok());
    Ok(Content {
        text,
        dimensions: dimensions.unwrap_or(DIMENSIONS),
    })
}

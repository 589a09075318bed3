//! Reads a request and applies the vendor's checks.

use super::parameters::{self, Parameters};
use super::{input, system, tools};
use crate::call_context::CallContext;
use crate::catalog;
use crate::google::{Continuation, Field, Picture, Refusal, Signer, Spelling, cached_content};
use crate::model::{Prompt, TextFormat};
use serde_json::Value;

const KNOWN: &[&str] = &[
    "background",
    "cached_content",
    "continuation_token",
    "environment",
    "generation_config",
    "input",
    "labels",
    "model",
    "previous_interaction_id",
    "response_format",
    "response_mime_type",
    "response_modalities",
    "safety_settings",
    "service_tier",
    "store",
    "stream",
    "system_instruction",
    "tools",
    "webhook_config",
];

#[derive(Debug)]
pub(super) struct Request {
    pub(super) prompt: Prompt,
    /// Whether the vendor stores the interaction and gives it an id.
    pub(super) stored: bool,
    /// Whether thoughts are shown, and not only counted.
    pub(super) summaries: bool,
    pub(super) picture: Option<Picture>,
    pub(super) continued: Option<Continuation>,
}

pub(super) fn parse(body: &[u8]) -> Result<Value, Refusal> {
    match serde_json::from_slice(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) | Err(_) => Err(Refusal::invalid("Invalid JSON payload received.")),
    }
}

/// Reads the model that a call names, including its script. The prefix `models/` is optional.
pub(super) fn model_of(request: &Value) -> Result<&str, Refusal> {
    match request.get("model").and_then(Value::as_str) {
        Some(model) if !model.is_empty() => Ok(model.strip_prefix("models/").unwrap_or(model)),
        _ => Err(Refusal::invalid("Either 'model' or 'agent' is required.")),
    }
}

pub(super) fn read(request: &Value, context: &CallContext<'_>) -> Result<Request, Refusal> {
    let body = Field::object(request, "", Spelling::Snake, KNOWN)?;
    if !catalog::exists(context.name) {
        return Err(Refusal::no_such_model(context.name));
    }
    refuse_state(&body)?;
    body.flag("stream")?;
    body.word("service_tier", &["standard", "flex", "priority"])?;
    let (tools, tool_use) = tools::read(&body)?;
    let Parameters {
        text_format,
        picture,
        effort,
        summaries,
        tokens_max,
        stops,
        seed,
    } = parameters::read(&body, context.name)?;
    let prompt = Prompt {
        system: system::read(&body)?,
        turns: input::read(&body, Signer::of(context))?,
        tools,
        tool_use,
        parallel: true,
        text_format: if picture.is_some() {
            TextFormat::Text
        } else {
            text_format
        },
        effort,
        tokens_max,
        stops,
        seed,
        cache_key: cached_content(&body)?,
    };
    Ok(Request {
        prompt,
        stored: body.flag("store")?.unwrap_or(true),
        summaries,
        picture,
        continued: Continuation::read(&body, context.name)?,
    })
}

/// Refuses background work and references to stored interactions, because the simulator stores no interactions.
fn refuse_state(body: &Field<'_>) -> Result<(), Refusal> {
    if let Some(id) = body.text("previous_interaction_id")? {
        return Err(Refusal::not_found(format!("Interaction '{id}' not found.")));
    }
    if body.flag("background")? == Some(true) {
        return Err(Refusal::invalid(
            "background=true is not supported for this model.",
        ));
    }
    Ok(())
}

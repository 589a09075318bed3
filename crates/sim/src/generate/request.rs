//! Reads a request and applies the vendor's checks.

use super::config::{self, Config, Modalities};
use super::tools;
use super::{contents, parts};
use crate::call_context::CallContext;
use crate::catalog;
use crate::google::{Continuation, Field, Refusal, Signer, Spelling, cached_content};
use crate::model::{Prompt, TextFormat};
use serde_json::Value;

const KNOWN: &[&str] = &[
    "cached_content",
    "contents",
    "continuation_token",
    "generation_config",
    "generation_output_config",
    "labels",
    "model",
    "model_armor_config",
    "safety_settings",
    "service_tier",
    "store",
    "system_instruction",
    "tool_config",
    "tools",
];

#[derive(Debug)]
pub(super) struct Request {
    pub(super) prompt: Prompt,
    pub(super) candidates: usize,
    /// The number of alternatives to report for each token; `None` means no log probabilities.
    pub(super) logprobs: Option<usize>,
    /// Whether thoughts are shown, and not only counted.
    pub(super) thoughts: bool,
    /// Whether the text is one word of an enumeration, without quotes.
    pub(super) bare_word: bool,
    pub(super) modalities: Modalities,
    pub(super) continued: Option<Continuation>,
}

impl Request {
    /// The number of tokens of one candidate's picture.
    pub(super) fn picture_tokens(&self) -> u64 {
        self.modalities.picture.map_or(0, |picture| picture.tokens)
    }
}

pub(super) fn parse(body: &[u8]) -> Result<Value, Refusal> {
    match serde_json::from_slice(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Refusal::invalid(
            "Invalid JSON payload received. Root element must be a message.",
        )),
        Err(error) => Err(Refusal::invalid(format!(
            "Invalid JSON payload received. Unexpected token.\n{error}"
        ))),
    }
}

pub(super) fn read(request: &Value, context: &CallContext<'_>) -> Result<Request, Refusal> {
    if !catalog::exists(context.name) {
        return Err(Refusal::no_such_model(context.name));
    }
    let body = Field::object(request, "", Spelling::Both, KNOWN)?;
    let cached = cached_content(&body)?;
    let turns = contents::read(&body, Signer::of(context))?;
    let (tools, tool_use) = tools::read(&body)?;
    let Config {
        text_format,
        bare_word,
        effort,
        thoughts,
        tokens_max,
        stops,
        seed,
        candidates,
        logprobs,
        modalities,
    } = config::read(&body, context)?;
    let prompt = Prompt {
        system: parts::system(&body)?,
        turns,
        tools,
        tool_use,
        parallel: true,
        text_format: if modalities.picture.is_some() {
            TextFormat::Text
        } else {
            text_format
        },
        effort,
        tokens_max,
        stops,
        seed,
        cache_key: cached,
    };
    Ok(Request {
        prompt,
        candidates,
        logprobs,
        thoughts,
        bare_word,
        modalities,
        continued: Continuation::read(&body, context.name)?,
    })
}

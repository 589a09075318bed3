//! Reads a request and refuses what the vendor would refuse.

use super::config::{self, Config};
use super::image::Picture;
use super::tools;
use super::{contents, parts};
use crate::ask::Ask;
use crate::google::{Field, Names, Refusal};
use crate::mind::{Prompt, Shape};
use crate::models;
use crate::seal;
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
const CONTINUATION: &str = "continuation";

/// A request that can be answered.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) prompt: Prompt,
    pub(super) candidates: usize,
    /// How many alternatives of each token are told; `None`: no log probabilities at all.
    pub(super) logprobs: Option<usize>,
    /// Thoughts are shown, not only counted.
    pub(super) thoughts: bool,
    /// The text is one word out of a list, without quotation marks.
    pub(super) bare_word: bool,
    pub(super) modalities: Modalities,
    /// So many bytes of the text were given before.
    pub(super) continued_at: Option<usize>,
}

/// What an answer is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Modalities {
    pub(super) text: bool,
    pub(super) picture: Option<Picture>,
}

/// Takes the body apart.
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

pub(super) fn read(request: &Value, ask: &Ask<'_>) -> Result<Request, Refusal> {
    if !models::exists(ask.name) {
        return Err(Refusal::no_such_model(ask.name));
    }
    let body = Field::object(request, "", Names::Both, KNOWN)?;
    if let Some(name) = body.text("cached_content")? {
        return Err(Refusal::not_found(format!(
            "CachedContent not found (or permission denied): {name}"
        )));
    }
    let signed = !ask.script.google.unsigned;
    let turns = contents::read(&body, ask.name, signed)?;
    let (tools, tool_use) = tools::read(&body)?;
    let Config {
        shape,
        bare_word,
        effort,
        thoughts,
        tokens_max,
        stops,
        seed,
        candidates,
        logprobs,
        modalities,
    } = config::read(&body, ask)?;
    let continued_at = match body.text("continuation_token")? {
        None => None,
        Some(token) => Some(continued(token, ask.name)?),
    };
    let prompt = Prompt {
        system: parts::system(&body)?,
        turns,
        tools,
        tool_use,
        parallel: true,
        shape: if modalities.picture.is_some() {
            Shape::Text
        } else {
            shape
        },
        effort,
        tokens_max,
        stops,
        seed,
        cache_key: false,
    };
    Ok(Request {
        prompt,
        candidates,
        logprobs,
        thoughts,
        bare_word,
        modalities,
        continued_at,
    })
}

/// The token by which the rest of a text can be had.
pub(super) fn continuation_token(model: &str, bytes: usize) -> String {
    seal::seal(CONTINUATION, model, &bytes.to_string())
}

fn continued(token: &str, model: &str) -> Result<usize, Refusal> {
    seal::open(CONTINUATION, model, token)
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| {
            Refusal::invalid("The continuation token is invalid or has expired.")
                .field("continuation_token")
        })
}

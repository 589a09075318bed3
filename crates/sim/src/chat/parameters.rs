//! Reads the scalar parameters of a request.

use crate::catalog;
use crate::model::{Effort, TextFormat};
use crate::openai::{Member, Refusal, check_metadata, type_name};
use serde_json::Value;

const STOPS_MAX: usize = 4;

#[derive(Debug)]
pub(super) struct Streaming {
    pub(super) wanted: bool,
    pub(super) include_usage: bool,
    /// Whether chunks have a padding string that hides their length.
    pub(super) obfuscation: bool,
}

pub(super) fn streaming(body: &Member<'_>) -> Result<Streaming, Refusal> {
    let wanted = body.flag("stream")?.unwrap_or(false);
    let options = body.child("stream_options")?;
    if options.is_some() && !wanted {
        return Err(Refusal::invalid(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        )
        .param("stream_options"));
    }
    let option = |name: &str| match &options {
        Some(options) => options.flag(name),
        None => Ok(None),
    };
    Ok(Streaming {
        wanted,
        include_usage: option("include_usage")?.unwrap_or(false),
        obfuscation: option("include_obfuscation")?.unwrap_or(true),
    })
}

/// Checks members that have no effect in the simulator.
pub(super) fn check_sampling(body: &Member<'_>, name: &str) -> Result<(), Refusal> {
    let temperature = body.decimal("temperature", 0, 2)?;
    let top_p = body.decimal("top_p", 0, 1)?;
    body.decimal("frequency_penalty", -2, 2)?;
    body.decimal("presence_penalty", -2, 2)?;
    body.one_of("verbosity", &["low", "medium", "high"])?;
    body.child("logit_bias")?;
    body.text("user")?;
    body.flag("store")?;
    body.one_of(
        "service_tier",
        &["auto", "default", "flex", "scale", "priority", "fast"],
    )?;
    check_metadata(body)?;
    if catalog::reasons(name) {
        for (member, value) in [("temperature", temperature), ("top_p", top_p)] {
            // Reasoning models accept only the default.
            if value.is_some_and(|value| value.to_bits() != 1.0_f64.to_bits()) {
                return Err(Refusal::invalid(format!(
                    "Unsupported value: '{member}' does not support this value with this model. \
                     Only the default (1) value is supported."
                ))
                .param(member)
                .code("unsupported_value"));
            }
        }
    }
    Ok(())
}

pub(super) fn effort(body: &Member<'_>, name: &str) -> Result<Effort, Refusal> {
    let word = body.one_of(
        "reasoning_effort",
        &["none", "minimal", "low", "medium", "high", "xhigh", "max"],
    )?;
    Ok(match word {
        Some("minimal") => Effort::Minimal,
        Some("low") => Effort::Low,
        Some("medium") => Effort::Medium,
        Some("high") => Effort::High,
        Some("xhigh" | "max") => Effort::Max,
        None if catalog::reasons(name) => Effort::Medium,
        _ => Effort::None,
    })
}

pub(super) fn tokens_max(body: &Member<'_>, name: &str) -> Result<Option<u64>, Refusal> {
    let old = body.integer("max_tokens", 1, i64::MAX)?;
    let new = body.integer("max_completion_tokens", 1, i64::MAX)?;
    if old.is_some() && catalog::reasons(name) {
        return Err(Refusal::invalid(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
        )
        .param("max_tokens")
        .code("unsupported_parameter"));
    }
    if old.is_some() && new.is_some() {
        return Err(Refusal::invalid(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
        )
        .param("max_tokens")
        .code("invalid_parameter_combination"));
    }
    Ok(new.or(old).and_then(|max| u64::try_from(max).ok()))
}

pub(super) fn stops(body: &Member<'_>) -> Result<Vec<String>, Refusal> {
    let list = match body.get("stop") {
        None => return Ok(Vec::new()),
        Some(Value::String(stop)) => return Ok(vec![stop.clone()]),
        Some(_) => body.list("stop")?.unwrap_or_default(),
    };
    if list.len() > STOPS_MAX {
        return Err(Refusal::invalid(format!(
            "Invalid 'stop': array too long. Expected an array with maximum length {STOPS_MAX}, \
             but got an array with length {} instead.",
            list.len()
        ))
        .param("stop")
        .code("array_above_max_length"));
    }
    list.iter()
        .enumerate()
        .map(|(index, stop)| match stop {
            Value::String(stop) => Ok(stop.clone()),
            other => Err(Refusal::invalid(format!(
                "Invalid type for 'stop[{index}]': expected a string, but got {} instead.",
                type_name(other)
            ))
            .param("stop")
            .code("invalid_type")),
        })
        .collect()
}

pub(super) fn logprobs(body: &Member<'_>) -> Result<Option<usize>, Refusal> {
    let wanted = body.flag("logprobs")?.unwrap_or(false);
    let top = body.integer("top_logprobs", 0, 20)?;
    match (wanted, top) {
        (false, Some(_)) => Err(Refusal::invalid(
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
        )
        .param("top_logprobs")),
        (false, None) => Ok(None),
        (true, top) => Ok(Some(usize::try_from(top.unwrap_or(0)).unwrap_or(0))),
    }
}

/// Whether `modalities` ask for audio. The request must then have a voice and a format.
pub(super) fn audio(body: &Member<'_>) -> Result<bool, Refusal> {
    let modalities = body.list("modalities")?.unwrap_or_default();
    if !modalities.iter().any(|modality| modality == "audio") {
        return Ok(false);
    }
    let audio = body.required_child("audio")?;
    audio.required("voice")?;
    audio.required("format")?;
    audio.one_of("format", &["wav", "mp3", "flac", "opus", "aac", "pcm16"])?;
    Ok(true)
}

/// JSON mode requires the word JSON in the prompt, because models otherwise tend to produce endless
/// whitespace.
pub(super) fn check_json_is_asked_for(
    text_format: &TextFormat,
    all_text: &str,
) -> Result<(), Refusal> {
    if *text_format == TextFormat::Json && !all_text.to_ascii_lowercase().contains("json") {
        return Err(Refusal::invalid(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of \
             type 'json_object'.",
        )
        .param("messages"));
    }
    Ok(())
}

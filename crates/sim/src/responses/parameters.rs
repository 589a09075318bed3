//! Reads the parameters of a request, except its input and its tools.

use crate::catalog;
use crate::model::{Effort, TextFormat};
use crate::openai::{Member, Refusal, check_metadata, read_name, strict};
use http::StatusCode;
use serde_json::json;

const TOKENS_MIN: i64 = 16;
const INCLUDES: &[&str] = &[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];

/// Optional parts of the answer that the caller asked for.
#[derive(Debug, Default)]
pub(super) struct Include {
    pub(super) encrypted_content: bool,
    pub(super) logprobs: bool,
}

/// How much of the reasoning the answer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Summary {
    None,
    Short,
    Detailed,
}

pub(super) fn include(body: &Member<'_>) -> Result<Include, Refusal> {
    let mut include = Include::default();
    for (index, item) in body.list("include")?.unwrap_or_default().iter().enumerate() {
        match item.as_str() {
            Some("reasoning.encrypted_content") => include.encrypted_content = true,
            Some("message.output_text.logprobs") => include.logprobs = true,
            Some(known) if INCLUDES.contains(&known) => {}
            _ => {
                let listed: Vec<_> = INCLUDES.iter().map(|word| format!("'{word}'")).collect();
                return Err(Refusal::invalid(format!(
                    "Invalid value: {item}. Supported values are: {}.",
                    listed.join(", ")
                ))
                .param(format!("include[{index}]"))
                .code("invalid_value"));
            }
        }
    }
    Ok(include)
}

pub(super) fn effort(body: &Member<'_>, name: &str) -> Result<Effort, Refusal> {
    let reasoning = body.child("reasoning")?;
    let word = match &reasoning {
        Some(reasoning) => reasoning.one_of(
            "effort",
            &["none", "minimal", "low", "medium", "high", "xhigh", "max"],
        )?,
        None => None,
    };
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

pub(super) fn summary(body: &Member<'_>) -> Result<Summary, Refusal> {
    let Some(reasoning) = body.child("reasoning")? else {
        return Ok(Summary::None);
    };
    let words = &["auto", "concise", "detailed"];
    let summary = reasoning.one_of("summary", words)?;
    let old = reasoning.one_of("generate_summary", words)?;
    Ok(match summary.or(old) {
        None => Summary::None,
        Some("detailed") => Summary::Detailed,
        Some(_) => Summary::Short,
    })
}

pub(super) fn tokens_max(body: &Member<'_>) -> Result<Option<u64>, Refusal> {
    let max = body.integer("max_output_tokens", TOKENS_MIN, i64::MAX)?;
    Ok(max.and_then(|max| u64::try_from(max).ok()))
}

/// Checks the types and limits of members, and refuses references to stored state.
pub(super) fn check(body: &Member<'_>, name: &str) -> Result<(), Refusal> {
    let temperature = body.decimal("temperature", 0, 2)?;
    let top_p = body.decimal("top_p", 0, 1)?;
    body.integer("top_logprobs", 0, 20)?;
    body.integer("max_tool_calls", 1, i64::MAX)?;
    body.one_of("truncation", &["auto", "disabled"])?;
    body.one_of(
        "service_tier",
        &[
            "auto",
            "default",
            "flex",
            "scale",
            "priority",
            "fast",
            "ultrafast",
        ],
    )?;
    for name in ["store", "background", "parallel_tool_calls"] {
        body.flag(name)?;
    }
    for name in ["user", "safety_identifier", "prompt_cache_key"] {
        body.text(name)?;
    }
    check_metadata(body)?;
    if catalog::reasons(name) {
        for (member, value) in [("temperature", temperature), ("top_p", top_p)] {
            if value.is_some_and(|value| value.to_bits() != 1.0_f64.to_bits()) {
                return Err(Refusal::invalid(format!(
                    "Unsupported parameter: '{member}' is not supported with this model."
                ))
                .param(member)
                .code("unsupported_parameter"));
            }
        }
    }
    check_state(body)
}

/// Refuses references to stored state, because nothing is stored.
fn check_state(body: &Member<'_>) -> Result<(), Refusal> {
    if let Some(id) = body.text("previous_response_id")? {
        return Err(
            Refusal::invalid(format!("Previous response with id '{id}' not found."))
                .param("previous_response_id")
                .code("previous_response_not_found"),
        );
    }
    for (name, what) in [("conversation", "Conversation"), ("prompt", "Prompt")] {
        if body.get(name).is_some() {
            return Err(Refusal {
                status: StatusCode::NOT_FOUND,
                ..Refusal::invalid(format!("{what} not found.")).param(name)
            });
        }
    }
    Ok(())
}

pub(super) fn text_format(body: &Member<'_>) -> Result<TextFormat, Refusal> {
    let Some(text) = body.child("text")? else {
        return Ok(TextFormat::Text);
    };
    text.one_of("verbosity", &["low", "medium", "high"])?;
    let Some(format) = text.child("format")? else {
        return Ok(TextFormat::Text);
    };
    format.required("type")?;
    match format.one_of("type", &["text", "json_object", "json_schema"])? {
        Some("json_object") => Ok(TextFormat::Json),
        Some("json_schema") => {
            let name = read_name(&format)?;
            format.required_child("schema")?;
            let schema = format
                .get("schema")
                .cloned()
                .unwrap_or_else(|| json!({"type": "object"}));
            if format.flag("strict")? == Some(true) {
                strict::check(&schema).map_err(|why| {
                    Refusal::invalid(format!(
                        "Invalid schema for response_format '{name}': {why}"
                    ))
                    .param("text.format.schema")
                    .code("invalid_json_schema")
                })?;
            }
            Ok(TextFormat::Schema(schema))
        }
        _ => Ok(TextFormat::Text),
    }
}

/// JSON mode requires the word JSON in the input, because models otherwise tend to produce endless
/// whitespace.
pub(super) fn check_json_is_asked_for(
    text_format: &TextFormat,
    all_text: &str,
) -> Result<(), Refusal> {
    if *text_format == TextFormat::Json && !all_text.to_ascii_lowercase().contains("json") {
        return Err(Refusal::invalid(
            "Response input messages must contain the word 'json' in some form to use \
             'text.format' of type 'json_object'.",
        )
        .param("input"));
    }
    Ok(())
}

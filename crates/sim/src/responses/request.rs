//! Reads a request and applies the vendor's checks.

use super::input::{self, Rules};
use super::parameters::{self, Summary};
use super::repeated_members::RepeatedMembers;
use super::tools::{self, ToolSettings};
use crate::call_context::CallContext;
use crate::catalog;
use crate::model::Prompt;
use crate::openai::{Member, Refusal};
use serde_json::Value;

/// The members that the protocol defines. With the script `strict`, a model refuses all others.
const KNOWN: &[&str] = &[
    "access_programs",
    "background",
    "context_management",
    "conversation",
    "image",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

#[derive(Debug)]
pub(super) struct Request {
    pub(super) prompt: Prompt,
    pub(super) summary: Summary,
    /// Whether the answer has encrypted reasoning: if the caller asks for it, or does not want the answer to be stored.
    pub(super) encrypted: bool,
    /// The number of alternatives to report for each token; `None` means no log probabilities.
    pub(super) logprobs: Option<usize>,
    /// Whether deltas have a padding string that hides their length.
    pub(super) obfuscation: bool,
    pub(super) repeated: RepeatedMembers,
}

pub(super) fn read(request: &Value, context: &CallContext<'_>) -> Result<Request, Refusal> {
    let body = Member::object(request, "")?;
    if !catalog::exists(context.name) {
        return Err(Refusal::invalid(format!(
            "The requested model '{}' does not exist.",
            context.name
        ))
        .param("model")
        .code("model_not_found"));
    }
    if context.script.strict {
        body.refuse_unknown(KNOWN)?;
    }
    parameters::check(&body, context.name)?;
    let obfuscation = match body.child("stream_options")? {
        Some(options) => options.flag("include_obfuscation")?.unwrap_or(true),
        None => true,
    };
    let rules = Rules {
        model: context.name,
        strict: context.script.strict,
        demands_reasoning: context.script.reasoning.demanded,
    };
    let mut input = input::read(&body, rules)?;
    if let Some(instructions) = body.text("instructions")? {
        input.system.insert(0, instructions.to_owned());
    }
    let ToolSettings {
        tools,
        tool_use,
        shown,
    } = tools::read(&body)?;
    let text_format = parameters::text_format(&body)?;
    parameters::check_json_is_asked_for(&text_format, &input.all_text)?;
    let include = parameters::include(&body)?;
    let top_logprobs = body.integer("top_logprobs", 0, 20)?.unwrap_or(0);
    let stored = body.flag("store")?.unwrap_or(true);
    let summary = parameters::summary(&body)?;
    let effort = parameters::effort(&body, context.name)?;
    Ok(Request {
        prompt: Prompt {
            system: input.system,
            turns: input.turns,
            tools,
            tool_use,
            parallel: body.flag("parallel_tool_calls")?.unwrap_or(true),
            text_format,
            effort,
            tokens_max: parameters::tokens_max(&body)?,
            stops: Vec::new(),
            seed: 0,
            cache_key: body.text("prompt_cache_key")?.is_some(),
        },
        summary,
        encrypted: include.encrypted_content || !stored,
        logprobs: include
            .logprobs
            .then(|| usize::try_from(top_logprobs).unwrap_or(0)),
        obfuscation,
        repeated: RepeatedMembers::of(request, shown, context.name),
    })
}

//! Reads a request and applies the vendor's checks.

use super::auth::Version;
use super::cache::{self, Ttl};
use super::family::Family;
use super::history::{self, Rules};
use super::member::Member;
use super::refusal::Refusal;
use super::thinking::{self, Thinking};
use super::tools::{self, ToolSettings};
use super::{block, format};
use crate::call_context::CallContext;
use crate::catalog;
use crate::model::Prompt;
use serde_json::{Value, json};

const TOKENS_MAX: u64 = 200_000;
const KNOWN: &[&str] = &[
    "cache_control",
    "container",
    "context_management",
    "diagnostics",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];
const SAMPLING: [&str; 3] = ["temperature", "top_p", "top_k"];

#[derive(Debug)]
pub(super) struct Request {
    pub(super) prompt: Prompt,
    pub(super) thinking: Thinking,
    /// The lifetime of the cached prompt, if the caller asked to cache it.
    pub(super) cache: Option<Ttl>,
}

pub(super) fn read(
    request: &Value,
    version: Version,
    context: &CallContext<'_>,
) -> Result<Request, Refusal> {
    let body = Member::object(request, "")?;
    check_members(&body, version)?;
    if !catalog::exists(context.name) {
        return Err(Refusal::no_such_model(context.name));
    }
    let family = Family::of(context.name);
    body.required("max_tokens")?;
    let tokens_max = body.integer("max_tokens", 0)?.unwrap_or_default();
    if tokens_max > TOKENS_MAX {
        return Err(Refusal::at(
            "max_tokens",
            format!(
                "{tokens_max} > {TOKENS_MAX}, which is the maximum allowed number of output tokens \
                 for {}",
                context.name
            ),
        ));
    }
    check_sampling(&body, family)?;
    body.one_of("service_tier", &["auto", "standard_only"])?;
    body.one_of("speed", &["standard", "fast"])?;
    if let Some(metadata) = body.child("metadata")? {
        metadata.refuse_unknown(&["user_id"])?;
        metadata.text("user_id")?;
    }
    let thinking = thinking::read(&body, family, tokens_max)?;
    let ToolSettings {
        tools,
        tool_use,
        parallel,
    } = tools::read(&body)?;
    thinking.check(&body, &tool_use)?;
    let rules = Rules {
        model: context.name,
        family,
        thinking,
        has_tools: !tools.is_empty(),
        demands_thoughts: context.script.reasoning.demanded,
    };
    let history = history::read(&body, rules)?;
    let mut system = system(&body)?;
    system.extend(history.system);
    Ok(Request {
        prompt: Prompt {
            system,
            turns: history.turns,
            tools,
            tool_use,
            parallel,
            text_format: format::read(&body)?,
            effort: thinking.effort,
            tokens_max: Some(tokens_max),
            stops: stops(&body)?,
            seed: 0,
            cache_key: false,
        },
        thinking,
        cache: cache::read(&body)?,
    })
}

fn check_members(body: &Member<'_>, version: Version) -> Result<(), Refusal> {
    if body.get("thread").is_some() {
        // After this error, current clients repeat the call without `thread` and with the whole history.
        return Err(
            Refusal::invalid("thread: Threads are not supported here").details(
                json!({"error_code": "thread_unsupported_request", "unsupported": ["thread"]}),
            ),
        );
    }
    body.refuse_unknown(KNOWN)?;
    for name in SAMPLING {
        if version == Version::Current && body.get(name).is_some() {
            return Err(body.wrong(name, "Extra inputs are not permitted"));
        }
    }
    Ok(())
}

fn check_sampling(body: &Member<'_>, family: Family) -> Result<(), Refusal> {
    let is_default =
        |value: Option<f64>| value.is_none_or(|value| value.to_bits() == 1.0_f64.to_bits());
    let temperature = is_default(body.share("temperature")?);
    let top_p = is_default(body.share("top_p")?);
    let top_k = body.integer("top_k", 0)?.is_none();
    if !family.has_fixed_sampling() {
        return Ok(());
    }
    for (name, free) in [
        ("temperature", temperature),
        ("top_p", top_p),
        ("top_k", top_k),
    ] {
        if !free {
            return Err(Refusal::invalid(format!(
                "`{name}` is not supported by this model. Remove it from your request."
            )));
        }
    }
    Ok(())
}

fn system(body: &Member<'_>) -> Result<Vec<String>, Refusal> {
    Ok(match body.get("system") {
        None => Vec::new(),
        Some(Value::String(text)) if text.is_empty() => Vec::new(),
        Some(Value::String(text)) => vec![text.clone()],
        Some(_) => vec![block::texts(body, "system")?],
    })
}

fn stops(body: &Member<'_>) -> Result<Vec<String>, Refusal> {
    let mut stops = Vec::new();
    for (index, stop) in body
        .list("stop_sequences")?
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        match stop {
            Value::String(stop) if stop.trim().is_empty() => {
                return Err(Refusal::at(
                    "stop_sequences",
                    "each stop sequence must contain non-whitespace",
                ));
            }
            Value::String(stop) => stops.push(stop.clone()),
            _ => {
                return Err(Refusal::at(
                    &format!("stop_sequences.{index}"),
                    "Input should be a valid string",
                ));
            }
        }
    }
    Ok(stops)
}

//! Writes a request of the common form for a Responses upstream.

use super::write_turns;
use crate::canon::{
    Dropped, Effort, Field, Format, Logprobs, Part, Reasoning, Request, Role, Target, Tool,
    ToolChoice, Turn, accepted_sampling, choose, is_zero,
};
use crate::failure::Failure;
use crate::json::write::{self, Object};
use crate::json::write_string;
use crate::profile::{Profile, Thinking};
use serde_json::Number;

/// Used for a schema that has no name.
const SCHEMA_NAME: &str = "response";
/// The minimum output limit. Upstreams refuse lower limits, so the gateway raises them to this one.
const OUTPUT_TOKENS_MIN: u64 = 16;

/// Writes the request. It asks the upstream to store nothing, and to return reasoning in the
/// encrypted form that can be sent back.
pub fn write_request(
    request: &Request,
    target: &Target<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<u8>, Failure> {
    let (instructions, turns) = instructions(&request.turns);
    let chooses = choose(request, dropped)?.is_some();
    let mut out = Vec::with_capacity(1024);
    let mut written = Ok(false);
    write::object(&mut out, |it| {
        it.text("model", target.upstream_model);
        if request.stream {
            it.boolean("stream", true);
        }
        it.boolean("store", false);
        if let Some(instructions) = &instructions {
            it.text("instructions", instructions);
        }
        it.array("input", |it| {
            written = write_turns::write(it, turns, request.image_detail, target, dropped)
                .map(|()| !it.is_empty());
        });
        options(it, request, target, dropped);
        if let (true, Some(choice)) = (chooses, &request.tool_choice) {
            it.value("tool_choice", |out| write_choice(out, choice));
        }
    });
    if !written? {
        return Err(Failure::invalid("The request says nothing to the model."));
    }
    for name in &request.unknown {
        dropped.name(name);
    }
    Ok(out)
}

/// Joins the leading text-only system turns into one text and returns it with the remaining turns. If
/// no other turns remain, returns all turns unchanged, because the input must not be empty.
fn instructions(turns: &[Turn]) -> (Option<String>, &[Turn]) {
    let is_plain = |turn: &Turn| {
        let texts = |part: &Part| matches!(part, Part::Text(_));
        turn.role == Role::System && turn.parts.iter().all(|(_, part)| texts(part))
    };
    let count = turns.iter().take_while(|turn| is_plain(turn)).count();
    let (system, rest) = turns.split_at(count);
    if rest.is_empty() {
        return (None, turns);
    }
    let parts = system.iter().flat_map(|turn| &turn.parts);
    let texts: Vec<&str> = parts
        .filter_map(|(_, part)| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let joined = (!texts.is_empty()).then(|| texts.join("\n\n"));
    (joined, rest)
}

fn options(it: &mut Object<'_>, request: &Request, target: &Target<'_>, dropped: &mut Dropped) {
    if let Some(limit) = request.output_tokens_max {
        it.number("max_output_tokens", limit.max(OUTPUT_TOKENS_MIN));
    }
    sampling(it, request, target.profile, dropped);
    if !request.tools.is_empty() {
        it.array("tools", |it| {
            for tool in &request.tools {
                it.object(|it| write_tool(it, tool));
            }
        });
    }
    if let Some(parallel) = request.parallel_tool_calls {
        it.boolean("parallel_tool_calls", parallel);
    }
    text(it, request);
    reasoning(it, request.reasoning.as_ref(), target.profile, dropped);
    let thinks = target.profile.reasoning != Some(false);
    if thinks || request.logprobs.is_some() {
        it.array("include", |it| {
            if thinks {
                it.text("reasoning.encrypted_content");
            }
            if request.logprobs.is_some() {
                it.text("message.output_text.logprobs");
            }
        });
    }
    if let Some(top) = request.logprobs.and_then(Logprobs::alternatives) {
        it.number("top_logprobs", top);
    }
    for (name, value) in [
        ("user", &request.user),
        ("safety_identifier", &request.safety_identifier),
        ("prompt_cache_key", &request.cache_key),
    ] {
        if let Some(value) = value {
            it.text(name, value);
        }
    }
    if let Some(metadata) = &request.metadata {
        it.raw("metadata", metadata.get());
    }
}

/// Writes the sampling options. This dialect has no stop sequences, penalties, seeds or further
/// choices.
fn sampling(it: &mut Object<'_>, request: &Request, profile: &Profile, dropped: &mut Dropped) {
    let sampling = &request.sampling;
    let temperature = sampling.temperature.as_ref();
    if let Some(value) = accepted_sampling(temperature, Field::Temperature, profile, dropped) {
        it.number("temperature", value);
    }
    if let Some(value) = accepted_sampling(sampling.top_p.as_ref(), Field::TopP, profile, dropped) {
        it.number("top_p", value);
    }
    let penalty = |value: &Option<Number>| value.as_ref().is_some_and(|value| !is_zero(value));
    for (field, set) in [
        (
            Field::FrequencyPenalty,
            penalty(&sampling.frequency_penalty),
        ),
        (Field::PresencePenalty, penalty(&sampling.presence_penalty)),
        (Field::TopK, sampling.top_k.is_some()),
        (Field::Seed, sampling.seed.is_some()),
        (Field::Stop, !request.stop.is_empty()),
        (Field::Choices, request.choices.is_some_and(|n| n > 1)),
    ] {
        if set {
            dropped.field(field);
        }
    }
}

/// Writes a tool. `strict` is always written, because its default differs between this dialect and the
/// others.
pub(in crate::responses) fn write_tool(it: &mut Object<'_>, tool: &Tool) {
    it.text("type", "function").text("name", &tool.name);
    if let Some(description) = &tool.description {
        it.text("description", description);
    }
    match &tool.parameters {
        Some(parameters) => it.raw("parameters", parameters.get()),
        None => it.null("parameters"),
    };
    it.boolean("strict", tool.strict.unwrap_or(false));
}

pub(in crate::responses) fn write_choice(out: &mut Vec<u8>, choice: &ToolChoice) {
    match choice {
        ToolChoice::Auto => write_string(out, "auto"),
        ToolChoice::None => write_string(out, "none"),
        ToolChoice::Required => write_string(out, "required"),
        ToolChoice::Named(name) => write::object(out, |it| {
            it.text("type", "function").text("name", name);
        }),
        ToolChoice::Allowed { names, required } => write::object(out, |it| {
            it.text("type", "allowed_tools");
            it.text("mode", if *required { "required" } else { "auto" });
            it.array("tools", |it| {
                for name in names {
                    it.object(|it| {
                        it.text("type", "function").text("name", name);
                    });
                }
            });
        }),
    }
}

fn text(it: &mut Object<'_>, request: &Request) {
    if request.format.is_none() && request.verbosity.is_none() {
        return;
    }
    it.object("text", |it| {
        if let Some(format) = &request.format {
            it.object("format", |it| write_format(it, format));
        }
        if let Some(verbosity) = &request.verbosity {
            it.text("verbosity", verbosity);
        }
    });
}

pub(in crate::responses) fn write_format(it: &mut Object<'_>, format: &Format) {
    let Format::Schema {
        name,
        description,
        schema,
        strict,
    } = format
    else {
        it.text("type", "json_object");
        return;
    };
    it.text("type", "json_schema");
    it.text("name", name.as_deref().unwrap_or(SCHEMA_NAME));
    if let Some(description) = description {
        it.text("description", description);
    }
    it.raw("schema", schema.get());
    if let Some(strict) = strict {
        it.boolean("strict", *strict);
    }
}

fn reasoning(
    it: &mut Object<'_>,
    reasoning: Option<&Reasoning>,
    profile: &Profile,
    dropped: &mut Dropped,
) {
    let Some(reasoning) = reasoning else {
        return;
    };
    let budget = reasoning.budget_tokens.map(Effort::of_budget);
    let effort = reasoning.effort.or(budget);
    let thinks = profile.reasoning != Some(false) && profile.thinking != Some(Thinking::None);
    if !thinks {
        if effort == Some(Effort::None) {
            dropped.shown_reasoning(reasoning);
        } else {
            dropped.reasoning(reasoning);
        }
        return;
    }
    if effort.is_none() && !reasoning.show {
        return;
    }
    it.object("reasoning", |it| {
        if let Some(effort) = effort {
            it.text("effort", profile.nearest_effort(effort, &[]).as_str());
        }
        if reasoning.show {
            it.text("summary", "auto");
        }
    });
}

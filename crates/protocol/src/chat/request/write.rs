//! Writes a request of the common form as a chat request for an upstream.

use std::collections::HashSet;

use super::write_turns::Messages;
use crate::canon::{Dropped, Effort, Field, Format, Reasoning, Request, Target, ToolChoice};
use crate::failure::Failure;
use crate::json::write::{Object, object};
use crate::profile::Thinking;

/// The maximum number of stop sequences that upstreams accept.
const STOPS_MAX: usize = 4;
/// Used for a schema that has no name, because chat requires a name.
const SCHEMA_NAME: &str = "response";

/// Writes the upstream's body. Members that chat does not have are listed in `dropped`. The request
/// is refused if dropping a member would change its meaning.
pub fn write_request(
    request: &Request,
    target: &Target<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<u8>, Failure> {
    for name in &request.unknown {
        dropped.name(name);
    }
    let mut out = Vec::with_capacity(1024);
    let mut result = Ok(());
    object(&mut out, |it| {
        it.text("model", target.upstream_model);
        it.array("messages", |messages| {
            let mut messages = Messages {
                target,
                dropped,
                detail: request.image_detail,
                list: messages,
            };
            result = request
                .turns
                .iter()
                .try_for_each(|turn| messages.turn(turn));
            if result.is_ok() && messages.list.is_empty() {
                result = Err(Failure::invalid("The request says nothing to the model."));
            }
        });
        if result.is_ok() {
            result = write_tools(it, request, dropped);
        }
        write_sampling(it, request, target, dropped);
        write_output(it, request, target, dropped);
        if request.stream {
            it.boolean("stream", true);
            // Ask for the usage chunk, because billing needs it.
            if target.asks_for_usage {
                it.object("stream_options", |it| {
                    it.boolean("include_usage", true);
                });
            }
        }
    });
    result.map(|()| out)
}

fn write_tools(
    it: &mut Object<'_>,
    request: &Request,
    dropped: &mut Dropped,
) -> Result<(), Failure> {
    if request.tools.is_empty() {
        // Upstreams refuse a tool choice in a request without tools.
        if let Some(ToolChoice::Required | ToolChoice::Named(_) | ToolChoice::Allowed { .. }) =
            request.tool_choice
        {
            dropped.field(Field::ToolChoice);
        }
        return Ok(());
    }
    it.array("tools", |list| {
        for tool in &request.tools {
            list.object(|it| {
                it.text("type", "function").object("function", |it| {
                    it.text("name", &tool.name);
                    if let Some(description) = &tool.description {
                        it.text("description", description);
                    }
                    if let Some(parameters) = &tool.parameters {
                        it.raw("parameters", parameters.get());
                    }
                    if let Some(strict) = tool.strict {
                        it.boolean("strict", strict);
                    }
                });
            });
        }
    });
    if let Some(parallel) = request.parallel_tool_calls {
        it.boolean("parallel_tool_calls", parallel);
    }
    match &request.tool_choice {
        None => {}
        Some(ToolChoice::Auto) => {
            it.text("tool_choice", "auto");
        }
        Some(ToolChoice::None) => {
            it.text("tool_choice", "none");
        }
        Some(ToolChoice::Required) => {
            it.text("tool_choice", "required");
        }
        Some(ToolChoice::Named(name)) => {
            declared(request, std::slice::from_ref(name), dropped)?;
            it.object("tool_choice", |it| function_named(it, name));
        }
        Some(ToolChoice::Allowed { names, required }) => {
            declared(request, names, dropped)?;
            it.object("tool_choice", |it| {
                it.text("type", "allowed_tools")
                    .object("allowed_tools", |it| {
                        it.text("mode", if *required { "required" } else { "auto" });
                        it.array("tools", |list| {
                            for name in names {
                                list.object(|it| function_named(it, name));
                            }
                        });
                    });
            });
        }
    }
    Ok(())
}

fn function_named(it: &mut Object<'_>, name: &str) {
    it.text("type", "function").object("function", |it| {
        it.text("name", name);
    });
}

/// Refuses a choice of a tool that is not declared, because dropping the choice would change the
/// meaning of the request.
fn declared(request: &Request, names: &[String], dropped: &Dropped) -> Result<(), Failure> {
    let tools = request.tools.iter().map(|tool| tool.name.as_str());
    let declared: HashSet<&str> = tools.collect();
    match names.iter().find(|name| !declared.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let failure = Failure::invalid(format!("The tool `{name}` is not declared."));
            Err(failure.param(Field::ToolChoice.name_in(dropped.client_dialect())))
        }
    }
}

fn write_sampling(
    it: &mut Object<'_>,
    request: &Request,
    target: &Target<'_>,
    dropped: &mut Dropped,
) {
    let sampling = &request.sampling;
    let fixed = target.profile.fixed_sampling == Some(true);
    for (name, field, value) in [
        ("temperature", Field::Temperature, &sampling.temperature),
        ("top_p", Field::TopP, &sampling.top_p),
    ] {
        match value {
            Some(value) if !fixed => {
                it.number(name, value);
            }
            Some(value) if !is_one(value) => dropped.field(field),
            _ => {}
        }
    }
    if sampling.top_k.is_some() {
        dropped.field(Field::TopK);
    }
    if let Some(penalty) = &sampling.frequency_penalty {
        it.number("frequency_penalty", penalty);
    }
    if let Some(penalty) = &sampling.presence_penalty {
        it.number("presence_penalty", penalty);
    }
    if let Some(seed) = sampling.seed {
        it.number("seed", seed);
    }
    if !request.stop.is_empty() {
        it.array("stop", |list| {
            for stop in request.stop.iter().take(STOPS_MAX) {
                list.text(stop);
            }
        });
        if request.stop.len() > STOPS_MAX {
            dropped.field(Field::Stop);
        }
    }
    if request.choices.is_some_and(|choices| choices > 1) {
        dropped.field(Field::Choices);
    }
    if let Some(logprobs) = request.logprobs {
        it.boolean("logprobs", true);
        if let Some(top) = logprobs.alternatives() {
            it.number("top_logprobs", top);
        }
    }
}

/// Whether a number is 1, the default of both sampling members.
fn is_one(number: &serde_json::Number) -> bool {
    matches!(number.to_string().as_str(), "1" | "1.0")
}

fn write_output(
    it: &mut Object<'_>,
    request: &Request,
    target: &Target<'_>,
    dropped: &mut Dropped,
) {
    if let Some(limit) = request.output_tokens_max {
        it.number(target.output_limit.as_str(), limit);
    }
    match &request.format {
        None => {}
        Some(Format::Json) => {
            it.object("response_format", |it| {
                it.text("type", "json_object");
            });
        }
        Some(Format::Schema {
            name,
            description,
            schema,
            strict,
        }) => {
            it.object("response_format", |it| {
                it.text("type", "json_schema").object("json_schema", |it| {
                    it.text("name", name.as_deref().unwrap_or(SCHEMA_NAME));
                    if let Some(description) = description {
                        it.text("description", description);
                    }
                    it.raw("schema", schema.get());
                    if let Some(strict) = strict {
                        it.boolean("strict", *strict);
                    }
                });
            });
        }
    }
    if let Some(reasoning) = &request.reasoning {
        write_reasoning(it, reasoning, target, dropped);
    }
    for (name, value) in [
        ("verbosity", &request.verbosity),
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

fn write_reasoning(
    it: &mut Object<'_>,
    reasoning: &Reasoning,
    target: &Target<'_>,
    dropped: &mut Dropped,
) {
    let profile = target.profile;
    let thinks = profile.reasoning != Some(false) && profile.thinking != Some(Thinking::None);
    let budget = reasoning.budget_tokens.map(Effort::of_budget);
    match reasoning.effort.or(budget) {
        Some(effort) if thinks => {
            let effort = profile.nearest_effort(effort, &[]);
            it.text("reasoning_effort", effort.as_str());
        }
        Some(Effort::None) | None => {}
        Some(_) => return dropped.reasoning(reasoning),
    }
    // Chat has no member that asks for reasoning. Upstreams that show it do so by default.
    dropped.shown_reasoning(reasoning);
}

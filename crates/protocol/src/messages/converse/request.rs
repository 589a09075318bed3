//! Writes a request for a Converse upstream, by rewriting one for a Messages upstream.

use super::content::{Content, write_joined};
use super::tools::{self, Choice};
use crate::canon::{Dropped, Field, Request, Target};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::write::{self, Object};
use crate::json::{Cursor, Raw, Shape, utf8};
use crate::messages::fields::Fields;
use crate::messages::request as messages;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct InexpressibleSettings {
    /// The model must not call its tools, which had to be declared because the conversation contains calls.
    choice: bool,
    /// The model must make calls one at a time.
    serial: bool,
    user: bool,
    anthropic_only: AnthropicOnly,
}

/// Parameters that only models of Anthropic have, and that were not sent to a model of another vendor.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct AnthropicOnly {
    top_k: bool,
    thinking: bool,
}

/// Writes a request of the common form for an upstream, and reports dropped members.
pub fn write_request(
    request: &Request,
    target: &Target<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<u8>, Failure> {
    let body = messages::write_request(request, target, dropped)?;
    // Apart from the settings in `inexpressible`, the Messages writer writes nothing that Converse cannot express, so
    // this `Dropped` is not read.
    let (body, inexpressible) = convert(&body, &[], &mut Dropped::new(Dialect::Messages))?;
    for (is_lost, field) in [
        (
            inexpressible.choice && request.tool_choice.is_some(),
            Field::ToolChoice,
        ),
        (inexpressible.serial, Field::ParallelToolCalls),
        (inexpressible.user && request.user.is_some(), Field::User),
        (
            inexpressible.user && request.safety_identifier.is_some(),
            Field::SafetyIdentifier,
        ),
        (inexpressible.anthropic_only.top_k, Field::TopK),
    ] {
        if is_lost {
            dropped.field(field);
        }
    }
    if inexpressible.anthropic_only.thinking
        && let Some(reasoning) = &request.reasoning
    {
        dropped.reasoning(reasoning);
    }
    Ok(body)
}

/// Rewrites a client's Messages request for an upstream. `betas` are the features that the client asks for in its
/// headers.
pub fn rewrite_request(
    body: &[u8],
    betas: &[&str],
    dropped: &mut Dropped,
) -> Result<Vec<u8>, Failure> {
    let (body, inexpressible) = convert(body, betas, dropped)?;
    for (is_lost, field) in [
        (inexpressible.choice, Field::ToolChoice),
        (inexpressible.serial, Field::ParallelToolCalls),
        (inexpressible.user, Field::User),
        (inexpressible.anthropic_only.top_k, Field::TopK),
        (inexpressible.anthropic_only.thinking, Field::Reasoning),
    ] {
        if is_lost {
            dropped.field(field);
        }
    }
    Ok(body)
}

fn convert(
    body: &[u8],
    betas: &[&str],
    dropped: &mut Dropped,
) -> Result<(Vec<u8>, InexpressibleSettings), Failure> {
    let mut cursor = Cursor::new(utf8(body)?);
    let Some(mut request) = Fields::read(&mut cursor)? else {
        return Err(Failure::invalid("The body must be an object."));
    };
    // The path of the request names the model and says whether to stream.
    let model = request.string("model").unwrap_or_default();
    request.take("stream");
    let mut content = Content::new(dropped);
    let system = request.take("system").map(|it| content.system(it));
    let system = system.transpose()?.unwrap_or_default();
    let turns = request.take("messages");
    let turns =
        turns.ok_or_else(|| Failure::invalid("`messages` is required.").param("messages"))?;
    let turns = content.turns(turns)?;
    let has_calls = content.has_calls;
    let tools = match request.take("tools") {
        Some(tools) => tools::read(tools, dropped)?,
        None => Vec::new(),
    };
    let choice = Choice::read(request.take("tool_choice"))?;
    let keeps_tools = !tools.is_empty() && (choice != Choice::None || has_calls);
    let mut inexpressible = InexpressibleSettings {
        choice: choice == Choice::None && keeps_tools,
        serial: choice.is_serial(),
        user: has_user(request.take("metadata")),
        ..InexpressibleSettings::default()
    };
    let mut betas = betas;
    if is_of_another_vendor(&model) {
        inexpressible.anthropic_only.top_k = request.take("top_k").is_some();
        inexpressible.anthropic_only.thinking = request.take("thinking").is_some();
        betas = &[];
    }

    let mut out = Vec::with_capacity(body.len() + 64);
    write::object(&mut out, |it| {
        it.array("messages", |it| {
            for turn in &turns {
                it.object(|it| {
                    it.text("role", &turn.role);
                    it.value("content", |out| write_joined(out, &turn.blocks));
                });
            }
        });
        if !system.is_empty() {
            it.value("system", |out| write_joined(out, &system));
        }
        write_inference(it, &mut request);
        if keeps_tools {
            it.object("toolConfig", |it| {
                it.value("tools", |out| write_joined(out, &tools));
                choice.write(it);
            });
        }
        write_output(it, request.take("output_config"), dropped);
        write_additional(it, &mut request, betas);
    });
    let mut unknown = Vec::new();
    request.report_rest_at_root(&mut unknown);
    for name in &unknown {
        dropped.name(name);
    }
    Ok((out, inexpressible))
}

/// Writes the parameters that all models have.
fn write_inference(it: &mut Object<'_>, request: &mut Fields<'_>) {
    let members = [
        ("max_tokens", "maxTokens"),
        ("temperature", "temperature"),
        ("top_p", "topP"),
        ("stop_sequences", "stopSequences"),
    ];
    let found: Vec<_> = members
        .into_iter()
        .filter_map(|(name, own)| Some((own, request.take(name)?)))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    if found.is_empty() {
        return;
    }
    it.object("inferenceConfig", |it| {
        for (own, value) in &found {
            it.raw(own, value.text());
        }
    });
    // An upstream reports which sequence ended the answer only if asked. Models that do not know this member ignore it.
    if found.iter().any(|(own, _)| *own == "stopSequences") {
        it.array("additionalModelResponseFieldPaths", |it| {
            it.text("/stop_sequence");
        });
    }
}

/// Writes the effort and the schema of the answer. Converse takes the schema as a string.
fn write_output(it: &mut Object<'_>, config: Option<Raw<'_>>, dropped: &mut Dropped) {
    let Some(mut config) = config.and_then(Fields::of) else {
        return;
    };
    let effort = config.string("effort");
    let mut format = config
        .take("format")
        .and_then(Fields::of)
        .unwrap_or_default();
    let schema = format
        .take("schema")
        .filter(|it| it.shape() == Shape::Object);
    if effort.is_some() || schema.is_some() {
        it.object("outputConfig", |it| {
            if let Some(effort) = &effort {
                it.text("effort", effort);
            }
            if let Some(schema) = &schema {
                it.object("textFormat", |it| {
                    it.text("type", "json_schema");
                    it.object("structure", |it| {
                        it.object("jsonSchema", |it| {
                            it.text("schema", schema.text());
                        });
                    });
                });
            }
        });
    }
    let mut unknown = Vec::new();
    config.report_rest(&"output_config", &mut unknown);
    for name in &unknown {
        dropped.name(name);
    }
}

/// Whether the model's name shows that it is not a model of Anthropic. Other models refuse parameters that
/// they do not have. A name starts with its vendor, or with a region and the vendor. An ARN need not name the
/// vendor.
fn is_of_another_vendor(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.contains('.') && !name.contains("anthropic") && !name.contains("claude")
}

/// Writes the parameters that only some models have, under the models' own names.
fn write_additional(it: &mut Object<'_>, request: &mut Fields<'_>, betas: &[&str]) {
    let found: Vec<_> = ["top_k", "thinking"]
        .into_iter()
        .filter_map(|name| Some((name, request.take(name)?)))
        .collect();
    if found.is_empty() && betas.is_empty() {
        return;
    }
    it.object("additionalModelRequestFields", |it| {
        for (name, value) in &found {
            it.raw(name, value.text());
        }
        if !betas.is_empty() {
            it.array("anthropic_beta", |it| {
                for beta in betas {
                    it.text(beta);
                }
            });
        }
    });
}

/// Whether `metadata` names the end user.
fn has_user(metadata: Option<Raw<'_>>) -> bool {
    let members = metadata.and_then(Fields::of);
    members.is_some_and(|mut members| members.take("user_id").is_some())
}

#[cfg(test)]
mod tests;

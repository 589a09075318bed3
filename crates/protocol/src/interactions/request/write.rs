//! Writes a request of the common form for an Interactions upstream.

use crate::canon::{
    Dropped, Effort, Field, Format, Image, ImageDetail, ImageSource, Member, MergedConversation,
    MergedTurn, Part, Path, Reasoning, Request, Role, Target, Thought, ToolCalling, ToolResult,
    accepted_sampling, arguments, choose, is_zero, label_schema, merge_turns, mime,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::write::{Array, Object, object};
use crate::profile::{Profile, Thinking};
use crate::shared::signature;
use crate::shared::unsupported::{drop_fields, drop_from_parts, drop_strict, unsupported_fields};

/// The thinking levels that every model with levels supports.
const COMMON_LEVELS: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

/// Writes the body for the upstream and reports dropped members.
pub fn write_request(
    request: &Request,
    target: &Target<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<u8>, Failure> {
    let is_own = |thought: &Thought| {
        let opaque = thought.opaque.as_ref();
        signature::for_upstream(opaque, Dialect::Interactions, target.public_model).is_some()
    };
    let MergedConversation { system, turns } = merge_turns(request, is_own, dropped)?;
    drop_unsupported(request, dropped);
    drop_from_parts(
        &turns,
        Dialect::Interactions,
        target.public_model,
        dropped,
        drop_from_result,
    );
    let choice = choose(request, dropped)?;
    let mut out = Vec::with_capacity(1024);
    object(&mut out, |body| {
        body.text("model", target.upstream_model);
        body.array("input", |steps| {
            for turn in &turns {
                match turn.role {
                    Role::Assistant => write_model(steps, turn, target),
                    _ => write_user(steps, turn, request.image_detail),
                }
            }
        });
        if !system.is_empty() {
            body.text("system_instruction", &system.join("\n\n"));
        }
        if !request.tools.is_empty() {
            body.array("tools", |tools| {
                for tool in &request.tools {
                    tools.object(|declared| {
                        declared.text("type", "function").text("name", &tool.name);
                        if let Some(description) = &tool.description {
                            declared.text("description", description);
                        }
                        if let Some(parameters) = &tool.parameters {
                            declared.raw("parameters", parameters.get());
                        }
                    });
                }
            });
        }
        let mut config = Vec::new();
        object(&mut config, |config| {
            write_config(config, request, choice, target.profile, dropped);
        });
        if config != b"{}" {
            body.value("generation_config", |out| out.append(&mut config));
        }
        if let Some(format) = &request.format {
            body.object("response_format", |it| {
                write_format(it, format, dropped);
            });
        }
        if request.stream {
            body.boolean("stream", true);
        }
        // Without this member the upstream would store the interaction.
        body.boolean("store", false);
    });
    Ok(out)
}

fn drop_unsupported(request: &Request, dropped: &mut Dropped) {
    for name in &request.unknown {
        dropped.name(name);
    }
    let sampling = &request.sampling;
    let punishes = |penalty: &Option<_>| penalty.as_ref().is_some_and(|value| !is_zero(value));
    let fields = [
        (sampling.top_k.is_some(), Field::TopK),
        (
            punishes(&sampling.frequency_penalty),
            Field::FrequencyPenalty,
        ),
        (punishes(&sampling.presence_penalty), Field::PresencePenalty),
    ];
    drop_fields(
        fields.into_iter().chain(unsupported_fields(request)),
        dropped,
    );
    if let Some(logprobs) = request.logprobs {
        dropped.logprobs(logprobs);
    }
    drop_strict(request, dropped);
}

/// Reports as dropped the names of documents in a tool result, and the parts that only another
/// dialect has.
fn drop_from_result(path: Path, part: &Part, dropped: &mut Dropped) {
    match part {
        Part::Document(document) if document.name.is_some() => {
            dropped.member(path, Member::DocumentName);
        }
        Part::Foreign => dropped.path(path),
        _ => {}
    }
}

fn write_format(it: &mut Object<'_>, format: &Format, dropped: &mut Dropped) {
    it.text("type", "text")
        .text("mime_type", "application/json");
    if let Format::Schema {
        name,
        description,
        schema,
        ..
    } = format
    {
        let (name, description) = (name.as_deref(), description.as_deref());
        it.raw(
            "schema",
            &label_schema(schema.get(), name, description, dropped),
        );
    }
}

fn write_user(steps: &mut Array<'_>, turn: &MergedTurn<'_>, detail: Option<ImageDetail>) {
    let said = |part: &Part| {
        matches!(
            part,
            Part::Text(_) | Part::Refusal(_) | Part::Image(_) | Part::Document(_)
        )
    };
    for (_, part) in &turn.parts {
        if let Part::ToolResult(result) = part {
            write_result(steps, result, detail);
        }
    }
    if turn.parts.iter().any(|(_, part)| said(part)) {
        steps.object(|step| {
            step.text("type", "user_input");
            step.array("content", |contents| {
                for (_, part) in &turn.parts {
                    write_content(contents, part, detail);
                }
            });
        });
    }
}

/// Writes a content block. Parts that are separate steps are skipped.
fn write_content(contents: &mut Array<'_>, part: &Part, detail: Option<ImageDetail>) {
    match part {
        Part::Text(text) | Part::Refusal(text) => {
            contents.object(|content| {
                content.text("type", "text").text("text", text);
            });
        }
        Part::Image(image) => write_image(contents, image, detail),
        Part::Document(document) => {
            contents.object(|content| {
                content.text("type", "document");
                content
                    .text("mime_type", &document.mime)
                    .text("data", &document.data);
            });
        }
        Part::Thought(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Foreign => {}
    }
}

fn write_image(contents: &mut Array<'_>, image: &Image, detail: Option<ImageDetail>) {
    contents.object(|content| {
        content.text("type", "image");
        match &image.source {
            ImageSource::Inline { mime, data } => {
                content.text("mime_type", mime).text("data", data);
            }
            ImageSource::Url(url) => {
                if let Some(mime) = mime::of_url(url) {
                    content.text("mime_type", mime);
                }
                content.text("uri", url);
            }
        }
        let resolution = match image.detail.or(detail) {
            None | Some(ImageDetail::Auto) => None,
            Some(ImageDetail::Low) => Some("low"),
            Some(ImageDetail::High) => Some("high"),
            Some(ImageDetail::Original) => Some("ultra_high"),
        };
        if let Some(resolution) = resolution {
            content.text("resolution", resolution);
        }
    });
}

fn write_result(steps: &mut Array<'_>, result: &ToolResult, detail: Option<ImageDetail>) {
    steps.object(|step| {
        step.text("type", "function_result")
            .text("call_id", &result.call_id);
        if let Some(name) = &result.name {
            step.text("name", name);
        }
        match result.parts.as_slice() {
            [] => step.text("result", ""),
            [(_, Part::Text(text))] => step.text("result", text),
            parts => step.array("result", |contents| {
                for (_, part) in parts {
                    write_content(contents, part, detail);
                }
            }),
        };
        if result.is_error {
            step.boolean("is_error", true);
        }
    });
}

/// Writes the steps of a model turn. A thought before the calls carries their signature. If the
/// signature is missing, the vendor's replacement value is used.
fn write_model(steps: &mut Array<'_>, turn: &MergedTurn<'_>, target: &Target<'_>) {
    let own = |opaque| signature::for_upstream(opaque, Dialect::Interactions, target.public_model);
    let mut unsigned = signature::bypass(target.profile);
    let mut output_parts = Vec::new();
    for (_, part) in &turn.parts {
        match part {
            Part::Thought(thought) => {
                if let Some(signature) = own(thought.opaque.as_ref()) {
                    flush(steps, &mut output_parts);
                    write_thought(steps, signature, &thought.text);
                    unsigned = None;
                }
            }
            Part::ToolCall(call) => {
                flush(steps, &mut output_parts);
                let signature = own(call.opaque.as_ref()).or(unsigned);
                unsigned = None;
                if let Some(signature) = signature {
                    write_thought(steps, signature, "");
                }
                steps.object(|step| {
                    step.text("type", "function_call");
                    step.text("id", &call.id).text("name", &call.name);
                    step.raw("arguments", &arguments::object(&call.arguments));
                });
            }
            part => output_parts.push(*part),
        }
    }
    flush(steps, &mut output_parts);
}

fn write_thought(steps: &mut Array<'_>, signature: &str, summary: &str) {
    steps.object(|step| {
        step.text("type", "thought").text("signature", signature);
        if !summary.is_empty() {
            step.array("summary", |contents| {
                contents.object(|content| {
                    content.text("type", "text").text("text", summary);
                });
            });
        }
    });
}

/// Writes the collected content blocks of the model as one step.
fn flush(steps: &mut Array<'_>, output_parts: &mut Vec<&Part>) {
    if output_parts.is_empty() {
        return;
    }
    steps.object(|step| {
        step.text("type", "model_output");
        step.array("content", |contents| {
            for part in output_parts.drain(..) {
                write_content(contents, part, None);
            }
        });
    });
}

/// The mode of function calling. It applies to the allowed names, or to all functions.
const fn mode(calling: ToolCalling) -> &'static str {
    match calling {
        ToolCalling::MustNot => "none",
        ToolCalling::May => "auto",
        ToolCalling::Must => "any",
    }
}

fn write_config(
    config: &mut Object<'_>,
    request: &Request,
    choice: Option<(ToolCalling, Vec<&str>)>,
    profile: &Profile,
    dropped: &mut Dropped,
) {
    if let Some(limit) = request.output_tokens_max {
        config.number("max_output_tokens", limit);
    }
    let rates = [
        (
            "temperature",
            &request.sampling.temperature,
            Field::Temperature,
        ),
        ("top_p", &request.sampling.top_p, Field::TopP),
    ];
    for (name, value, field) in rates {
        if let Some(value) = accepted_sampling(value.as_ref(), field, profile, dropped) {
            config.number(name, value);
        }
    }
    if let Some(seed) = request.sampling.seed {
        config.number("seed", seed);
    }
    if !request.stop.is_empty() {
        config.array("stop_sequences", |list| {
            for stop in &request.stop {
                list.text(stop);
            }
        });
    }
    if let Some(reasoning) = &request.reasoning {
        write_thinking(config, reasoning, profile, dropped);
    }
    match choice {
        None => {}
        Some((calling, names)) if names.is_empty() => {
            config.text("tool_choice", mode(calling));
        }
        Some((calling, names)) => {
            config.object("tool_choice", |choice| {
                choice.object("allowed_tools", |allowed| {
                    allowed.text("mode", mode(calling));
                    allowed.array("tools", |list| {
                        for name in names {
                            list.text(name);
                        }
                    });
                });
            });
        }
    }
}

fn write_thinking(
    config: &mut Object<'_>,
    reasoning: &Reasoning,
    profile: &Profile,
    dropped: &mut Dropped,
) {
    let Reasoning {
        effort,
        budget_tokens,
        show,
        ..
    } = reasoning.clone();
    let effort = effort.or(budget_tokens.map(Effort::of_budget));
    let off = effort == Some(Effort::None);
    if profile.thinking == Some(Thinking::None) || profile.reasoning == Some(false) {
        if off {
            dropped.shown_reasoning(reasoning);
        } else {
            dropped.reasoning(reasoning);
        }
        return;
    }
    if let Some(effort) = effort {
        let level = match profile.nearest_effort(effort, &COMMON_LEVELS) {
            Effort::None | Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High | Effort::XHigh | Effort::Max => "high",
        };
        config.text("thinking_level", level);
    }
    if show && !off {
        config.text("thinking_summaries", "auto");
    }
}

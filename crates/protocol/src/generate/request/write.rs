//! Writes a request of the common form for a Generate Content upstream. The path names the model
//! and says whether the answer is streamed, so the body does neither.

use super::schema::write_schema;
use super::write_config::{STOP_MAX, write_config};
use crate::canon::{
    Dropped, Field, Image, ImageDetail, ImageSource, Member, MergedConversation, MergedTurn, Part,
    Path, Request, Role, Target, Thought, Tool, ToolCalling, ToolResult, choose, merge_turns, mime,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::generate::part::{self, TextKind};
use crate::json::write::{Array, Object, object, raw};
use crate::json::{Cursor, Shape};
use crate::profile::{Profile, Thinking};
use crate::shared::signature;
use crate::shared::unsupported::{drop_fields, drop_from_parts, drop_strict, unsupported_fields};

/// Writes the body for the upstream and reports dropped members.
pub fn write_request(
    request: &Request,
    target: &Target<'_>,
    dropped: &mut Dropped,
) -> Result<Vec<u8>, Failure> {
    let is_own = |thought: &Thought| {
        let opaque = thought.opaque.as_ref();
        signature::for_upstream(opaque, Dialect::Generate, target.public_model).is_some()
    };
    let MergedConversation { system, turns } = merge_turns(request, is_own, dropped)?;
    let detail = one_detail(request, dropped);
    drop_unsupported(request, dropped);
    drop_from_parts(
        &turns,
        Dialect::Generate,
        target.public_model,
        dropped,
        drop_from_result,
    );
    let choice = choose(request, dropped)?;
    let mut out = Vec::with_capacity(1024);
    object(&mut out, |body| {
        body.array("contents", |contents| {
            if turns
                .first()
                .is_some_and(|turn| turn.role == Role::Assistant)
            {
                // The first content must have the role `user`.
                content(contents, "user", |parts| {
                    write_text(parts, ".", None);
                });
            }
            for turn in &turns {
                write_turn(contents, turn, target);
            }
        });
        if !system.is_empty() {
            body.object("systemInstruction", |instruction| {
                instruction.array("parts", |parts| {
                    for text in &system {
                        write_text(parts, text, None);
                    }
                });
            });
        }
        if !request.tools.is_empty() {
            body.array("tools", |tools| {
                tools.object(|tool| {
                    tool.array("functionDeclarations", |list| {
                        for tool in &request.tools {
                            write_tool(list, tool);
                        }
                    });
                });
            });
        }
        if let Some((calling, names)) = &choice {
            write_choice(body, mode(*calling), names);
        }
        let mut config = Vec::new();
        object(&mut config, |config| {
            write_config(config, request, detail, target.profile, dropped);
        });
        if config != b"{}" {
            body.value("generationConfig", |out| out.append(&mut config));
        }
    });
    Ok(out)
}

fn drop_unsupported(request: &Request, dropped: &mut Dropped) {
    for name in &request.unknown {
        dropped.name(name);
    }
    let stop = (request.stop.len() > STOP_MAX, Field::Stop);
    let fields = unsupported_fields(request).into_iter().chain([stop]);
    drop_fields(fields, dropped);
    drop_strict(request, dropped);
}

/// Reports as dropped the parts of a tool result that are neither text nor image.
fn drop_from_result(path: Path, part: &Part, dropped: &mut Dropped) {
    if !matches!(part, Part::Text(_) | Part::Refusal(_) | Part::Image(_)) {
        dropped.path(path);
    }
}

/// The detail level for images. This dialect has one setting for all of them.
fn one_detail(request: &Request, dropped: &mut Dropped) -> Option<&'static str> {
    let levels = pictures(request).filter_map(|(path, image)| {
        let (detail, is_own) = match image.detail {
            Some(detail) => (detail, true),
            None => (request.image_detail?, false),
        };
        match detail {
            ImageDetail::Auto => None,
            ImageDetail::Low => Some((path, is_own, "MEDIA_RESOLUTION_LOW")),
            ImageDetail::High | ImageDetail::Original => {
                Some((path, is_own, "MEDIA_RESOLUTION_HIGH"))
            }
        }
    });
    let levels: Vec<_> = levels.collect();
    let (_, _, first) = levels.first()?;
    if levels.iter().all(|(_, _, level)| level == first) {
        return Some(first);
    }
    for (path, is_own, _) in levels {
        if is_own {
            dropped.member(path, Member::ImageDetail);
        } else {
            dropped.field(Field::ImageDetail);
        }
    }
    None
}

fn pictures(request: &Request) -> impl Iterator<Item = (Path, &Image)> {
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    let parts = parts.flat_map(|part| match &part.1 {
        Part::ToolResult(result) => result.parts.as_slice(),
        _ => std::slice::from_ref(part),
    });
    parts.filter_map(|(path, part)| match part {
        Part::Image(image) => Some((*path, image)),
        _ => None,
    })
}

fn content(contents: &mut Array<'_>, role: &str, write: impl FnOnce(&mut Array<'_>)) {
    contents.object(|content| {
        content.text("role", role).array("parts", write);
    });
}

fn write_turn(contents: &mut Array<'_>, turn: &MergedTurn<'_>, target: &Target<'_>) {
    match turn.role {
        Role::Assistant => content(contents, "model", |parts| write_model(parts, turn, target)),
        _ => content(contents, "user", |parts| {
            write_user(parts, turn, target.profile);
        }),
    }
}

/// Writes a turn of the model. In this dialect calls and texts carry signatures. So the signature of a thought
/// moves to the next part, or to an empty part at the end.
fn write_model(parts: &mut Array<'_>, turn: &MergedTurn<'_>, target: &Target<'_>) {
    let own = |opaque| signature::for_upstream(opaque, Dialect::Generate, target.public_model);
    let calls = |(_, part): &(Path, &Part)| matches!(part, Part::ToolCall(_));
    let has_calls = turn.parts.iter().any(calls);
    let mut pending = None;
    let mut unsigned = signature::bypass(target.profile);
    for (_, part) in &turn.parts {
        match part {
            Part::Thought(thought) => pending = own(thought.opaque.as_ref()).or(pending),
            // If the turn has calls, the signature goes to the first call and not to a text.
            Part::Text(text) | Part::Refusal(text) if has_calls => write_text(parts, text, None),
            Part::Text(text) | Part::Refusal(text) => write_text(parts, text, pending.take()),
            Part::ToolCall(call) => {
                let signature = own(call.opaque.as_ref()).or_else(|| pending.take());
                // Only the first call of a turn must be signed. Without a signature, that call gets
                // the vendor's replacement value.
                let signature = signature.or(unsigned);
                unsigned = None;
                parts.value(|out| {
                    part::call(out, &call.id, &call.name, &call.arguments, signature);
                });
            }
            Part::Image(image) => picture(parts, image),
            Part::Document(document) => attach(parts, &document.mime, &document.data),
            Part::ToolResult(_) | Part::Foreign => {}
        }
    }
    if pending.is_some() {
        write_text(parts, "", pending);
    }
}

fn write_user(parts: &mut Array<'_>, turn: &MergedTurn<'_>, profile: &Profile) {
    let mut after = Vec::new();
    for (_, part) in &turn.parts {
        match part {
            Part::Text(text) | Part::Refusal(text) => write_text(parts, text, None),
            Part::Image(image) => picture(parts, image),
            Part::Document(document) => attach(parts, &document.mime, &document.data),
            Part::ToolResult(result) => write_result(parts, result, profile, &mut after),
            Part::Thought(_) | Part::ToolCall(_) | Part::Foreign => {}
        }
    }
    for image in after {
        picture(parts, image);
    }
}

fn write_text(parts: &mut Array<'_>, text: &str, signature: Option<&str>) {
    parts.value(|out| part::text(out, text, TextKind::Answer, signature));
}

fn attach(parts: &mut Array<'_>, mime: &str, data: &str) {
    parts.value(|out| part::inline(out, mime, data));
}

fn picture(parts: &mut Array<'_>, image: &Image) {
    match &image.source {
        ImageSource::Url(url) => {
            parts.value(|out| part::file(out, url, mime::of_url(url)));
        }
        ImageSource::Inline { mime, data } => attach(parts, mime, data),
    }
}

/// Writes the result of a function. Models that think by level accept images in it. For other
/// models the images follow after all results.
fn write_result<'a>(
    parts: &mut Array<'_>,
    result: &'a ToolResult,
    profile: &Profile,
    after: &mut Vec<&'a Image>,
) {
    let pictures = result.parts.iter().filter_map(|(_, part)| match part {
        Part::Image(image) => Some(image),
        _ => None,
    });
    let pictures: Vec<_> = pictures.collect();
    parts.object(|part| {
        part.object("functionResponse", |response| {
            response.text("id", &result.call_id);
            response.text("name", result.name.as_deref().unwrap_or_default());
            response.value("response", |out| write_result_object(out, result));
            if profile.thinking != Some(Thinking::Level) {
                after.extend(pictures);
            } else if !pictures.is_empty() {
                response.array("parts", |parts| {
                    for image in pictures {
                        picture(parts, image);
                    }
                });
            }
        });
    });
}

/// Writes a result, which must be an object. A text that is a JSON object is sent unchanged, unless
/// it has one of the members in which other texts are wrapped.
fn write_result_object(out: &mut Vec<u8>, result: &ToolResult) {
    let texts = result.parts.iter().filter_map(|(_, part)| match part {
        Part::Text(text) | Part::Refusal(text) => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if result.is_error {
        object(out, |said| {
            said.text("error", &text);
        });
    } else if is_plain_object(&text) {
        raw(out, text.trim());
    } else {
        object(out, |said| {
            said.text("output", &text);
        });
    }
}

fn is_plain_object(text: &str) -> bool {
    let mut cursor = Cursor::new(text);
    if !matches!(cursor.shape(), Ok(Shape::Object)) {
        return false;
    }
    let mut plain = true;
    let read = cursor.object(|cursor, name| {
        plain &= !name.is("error") && !name.is("output");
        cursor.value().map(drop)
    });
    plain && read.and_then(|()| cursor.end()).is_ok()
}

fn write_tool(list: &mut Array<'_>, tool: &Tool) {
    list.object(|declared| {
        declared.text("name", &tool.name);
        if let Some(description) = &tool.description {
            declared.text("description", description);
        }
        if let Some(parameters) = &tool.parameters {
            declared.value("parametersJsonSchema", |out| {
                write_schema(out, parameters.get());
            });
        }
    });
}

/// The mode of function calling. It applies to the allowed names, or to all functions.
const fn mode(calling: ToolCalling) -> &'static str {
    match calling {
        ToolCalling::MustNot => "NONE",
        ToolCalling::May => "VALIDATED",
        ToolCalling::Must => "ANY",
    }
}

fn write_choice(body: &mut Object<'_>, mode: &str, names: &[&str]) {
    body.object("toolConfig", |config| {
        config.object("functionCallingConfig", |config| {
            config.text("mode", mode);
            if !names.is_empty() {
                config.array("allowedFunctionNames", |list| {
                    for name in names {
                        list.text(name);
                    }
                });
            }
        });
    });
}

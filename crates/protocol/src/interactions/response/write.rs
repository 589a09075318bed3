//! Writes whole answers for clients of Interactions.

use crate::canon::{
    AnswerContext, Block, OffsetConverter, Opaque, Response, ResponseBlock, Stop, arguments,
};
use crate::dialect::Dialect;
use crate::interactions::usage::write_usage;
use crate::json::write::{Array, Object, object};
use crate::shared::iso_time::iso;
use crate::shared::signature;

/// Writes a whole answer.
pub fn write_response(response: &Response, context: &AnswerContext) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    object(&mut out, |body| {
        write_identity(body, context);
        body.text(
            "status",
            status(&response.stop, response.blocks.iter().any(has_text)),
        );
        write_times(body, context);
        body.array("steps", |steps| {
            for block in &response.blocks {
                write_step(steps, block, context);
            }
        });
        if let Some(usage) = &response.usage {
            body.value("usage", |out| write_usage(out, usage));
        }
    });
    out
}

fn has_text(block: &ResponseBlock) -> bool {
    matches!(block.kind, Block::Text | Block::Refusal) && !block.text.is_empty()
}

pub(in crate::interactions) fn write_identity(body: &mut Object<'_>, context: &AnswerContext) {
    body.text("id", &context.id).text("object", "interaction");
    body.text("model", &context.model);
}

pub(in crate::interactions) fn write_times(body: &mut Object<'_>, context: &AnswerContext) {
    let created = iso(context.created);
    body.text("created", &created).text("updated", &created);
}

pub(in crate::interactions) fn status(stop: &Stop, spoke: bool) -> &'static str {
    match stop {
        Stop::End | Stop::Sequence(_) => "completed",
        Stop::Refusal { .. } if spoke => "completed",
        Stop::ToolCalls => "requires_action",
        Stop::Length
        | Stop::ContextFull
        | Stop::Filter(_)
        | Stop::Refusal { .. }
        | Stop::Paused => "incomplete",
    }
}

fn write_step(steps: &mut Array<'_>, block: &ResponseBlock, context: &AnswerContext) {
    let signature = block.opaque.as_ref().map(signature_text);
    match &block.kind {
        Block::Text | Block::Refusal => {
            if block.text.is_empty() {
                return;
            }
            write_output(steps, |content| {
                content.text("type", "text").text("text", &block.text);
                write_sources(content, block);
            });
        }
        Block::Image { mime } => write_output(steps, |content| {
            content.text("type", "image").text("mime_type", mime);
            content.text("data", &block.text);
        }),
        Block::Thought => {
            // Thoughts without a signature are shown only to clients that asked for them.
            if signature.is_some() || (shows(context) && !block.text.is_empty()) {
                write_thought(steps, signature.as_deref(), &block.text);
            }
        }
        Block::ToolCall { id, name } => {
            if signature.is_some() {
                write_thought(steps, signature.as_deref(), "");
            }
            steps.object(|step| {
                step.text("type", "function_call")
                    .text("id", id)
                    .text("name", name);
                step.raw("arguments", &arguments::object(&block.text));
            });
        }
    }
}

fn write_output(steps: &mut Array<'_>, write: impl FnOnce(&mut Object<'_>)) {
    steps.object(|step| {
        step.text("type", "model_output");
        step.array("content", |contents| {
            contents.object(write);
        });
    });
}

fn write_thought(steps: &mut Array<'_>, signature: Option<&str>, summary: &str) {
    steps.object(|step| {
        step.text("type", "thought");
        if !summary.is_empty() {
            step.array("summary", |contents| {
                contents.object(|content| {
                    content.text("type", "text").text("text", summary);
                });
            });
        }
        if let Some(signature) = signature {
            step.text("signature", signature);
        }
    });
}

fn write_sources(content: &mut Object<'_>, block: &ResponseBlock) {
    let mut offsets = OffsetConverter::new();
    offsets.push(&block.text);
    let sources = block
        .citations
        .iter()
        .filter_map(|(url, title, start, end)| {
            Some((url, title, offsets.bytes(*start)?, offsets.bytes(*end)?))
        });
    let mut sources = sources.peekable();
    if sources.peek().is_some() {
        content.array("annotations", |list| {
            for (url, title, start, end) in sources {
                list.object(|source| write_source(source, url, title, start, end));
            }
        });
    }
}

pub(in crate::interactions) fn write_source(
    source: &mut Object<'_>,
    url: &str,
    title: &str,
    start: u64,
    end: u64,
) {
    source
        .text("type", "url_citation")
        .text("url", url)
        .text("title", title);
    source.number("start_index", start).number("end_index", end);
}

pub(in crate::interactions) fn signature_text(opaque: &Opaque) -> String {
    signature::for_client(opaque, Dialect::Interactions).into_owned()
}

/// Whether the client asked for thoughts.
pub(in crate::interactions) fn shows(context: &AnswerContext) -> bool {
    let reasoning = context.request.reasoning.as_ref();
    reasoning.is_some_and(|reasoning| reasoning.show)
}

//! Writes a whole message of the common form.

use super::stop;
use crate::canon::carrier::{self, IdPayload};
use crate::canon::{
    AnswerContext, Block, Opaque, Response, ResponseBlock, Stop, Thought, arguments,
};
use crate::dialect::Dialect;
use crate::json::write::{self, Array};
use crate::messages::call_id::plain_id;
use crate::messages::redacted;
use crate::messages::usage::write_usage;
use crate::shared::signature;
use crate::usage::Usage;

/// Writes a whole answer.
pub fn write_response(response: &Response, context: &AnswerContext) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let refused = |block: &ResponseBlock| block.kind == Block::Refusal;
    let stop = ended(&response.stop, response.blocks.iter().any(refused));
    write::object(&mut out, |it| {
        it.text("id", &context.id)
            .text("type", "message")
            .text("role", "assistant")
            .text("model", &context.model);
        it.array("content", |it| {
            let shows_thoughts = context.request.wants_thoughts();
            let mut hidden = Vec::new();
            for block in &response.blocks {
                if block.kind == Block::Thought && !shows_thoughts {
                    hidden.push(Thought {
                        text: block.text.clone(),
                        opaque: block.opaque.clone(),
                        redacted: false,
                    });
                } else {
                    write_block(it, block, &mut hidden);
                }
            }
        });
        stop::write(it, &stop);
        let usage = response.usage.unwrap_or(estimate(context));
        it.object("usage", |it| write_usage(it, &usage));
    });
    out
}

/// The stop reason for this dialect. If an answer ended normally but contains a refusal, the reason is the
/// refusal.
pub(in crate::messages) fn ended(stop: &Stop, refused: bool) -> Stop {
    match stop {
        Stop::End if refused => Stop::Refusal { category: None },
        stop => stop.clone(),
    }
}

/// Writes a block. `hidden` collects thoughts that the client did not ask for. They are encoded in
/// the id of the next call, because their model needs them back.
fn write_block(it: &mut Array<'_>, block: &ResponseBlock, hidden: &mut Vec<Thought>) {
    let text = &block.text;
    match &block.kind {
        Block::Text | Block::Refusal => {
            // Clients send their history back, and upstreams refuse empty texts.
            if !text.is_empty() {
                it.object(|it| {
                    it.text("type", "text").text("text", text);
                });
            }
        }
        Block::Thought => {
            let opaque = block.opaque.as_ref();
            let value = opaque.map(|opaque| signature::for_client(opaque, Dialect::Messages));
            if text.is_empty() && value.is_none() {
                return;
            }
            it.object(|it| match value.as_deref().and_then(redacted::data) {
                Some(data) => {
                    it.text("type", "redacted_thinking").text("data", data);
                }
                None => {
                    it.text("type", "thinking")
                        .text("thinking", text)
                        .text("signature", value.as_deref().unwrap_or_default());
                }
            });
        }
        Block::ToolCall { id, name } => {
            let id = call_id(id, std::mem::take(hidden), block.opaque.as_ref());
            it.object(|it| {
                it.text("type", "tool_use")
                    .text("id", &id)
                    .text("name", name)
                    .raw("input", &arguments::object(text));
            });
        }
        // `convert/answer.rs` or `transcoder.rs` has replaced the image with a text.
        Block::Image { .. } => {}
    }
}

/// The id of a call. It carries the signature and hidden thoughts, because calls have no members for them.
pub(in crate::messages) fn call_id(
    id: &str,
    thoughts: Vec<Thought>,
    opaque: Option<&Opaque>,
) -> String {
    let carried = IdPayload {
        thoughts,
        opaque: opaque.cloned(),
    };
    carrier::encode(&plain_id(id), &carried)
}

/// The usage to report until the upstream has reported usage.
pub(in crate::messages) fn estimate(context: &AnswerContext) -> Usage {
    Usage {
        input: context.input_tokens,
        ..Usage::default()
    }
}

//! Writes whole chat completions.

use super::message::{
    Citation, PendingThoughts, finish_reason, write_annotations, write_call_head, write_logprobs,
};
use crate::canon::{AnswerContext, Block, Opaque, Response, ResponseBlock, Thought, Token};
use crate::chat::usage::write_usage;
use crate::json::write::{Object, object};

/// Writes the completion for a client.
pub fn write_response(response: &Response, context: &AnswerContext) -> Vec<u8> {
    let message = Message::of(&response.blocks);
    let mut out = Vec::with_capacity(512);
    object(&mut out, |it| {
        it.text("id", &context.id).text("object", "chat.completion");
        it.number("created", context.created)
            .text("model", &context.model);
        it.array("choices", |list| {
            list.object(|it| {
                it.number("index", 0);
                it.object("message", |it| message.write(it));
                if message.logprobs.is_empty() {
                    it.null("logprobs");
                } else {
                    write_logprobs(it, &message.logprobs);
                }
                let refused = !message.refusal.is_empty();
                it.text("finish_reason", finish_reason(&response.stop, refused));
            });
        });
        if let Some(usage) = &response.usage {
            it.object("usage", |it| write_usage(it, usage));
        }
    });
    out
}

/// The only message of an answer, assembled from its blocks.
#[derive(Default)]
struct Message<'r> {
    content: String,
    thought: String,
    refusal: String,
    calls: Vec<Call<'r>>,
    citations: Vec<Citation>,
    logprobs: Vec<Token>,
}

struct Call<'r> {
    id: String,
    name: &'r str,
    arguments: &'r str,
    signature: Option<&'r Opaque>,
}

impl<'r> Message<'r> {
    fn of(blocks: &'r [ResponseBlock]) -> Self {
        let mut message = Self::default();
        let mut carry = PendingThoughts::default();
        for block in blocks {
            match &block.kind {
                Block::Text => message.push_text(block),
                Block::Refusal => message.refusal.push_str(&block.text),
                Block::Thought => {
                    message.thought.push_str(&block.text);
                    carry.keep(Thought {
                        text: block.text.clone(),
                        opaque: block.opaque.clone(),
                        redacted: false,
                    });
                }
                Block::ToolCall { id, name } => message.calls.push(Call {
                    id: carry.encode_id(id, block.opaque.as_ref()),
                    name,
                    // Clients parse the arguments, and an empty string is not JSON.
                    arguments: match block.text.as_str() {
                        "" => "{}",
                        arguments => arguments,
                    },
                    signature: block.opaque.as_ref(),
                }),
                // `convert/answer.rs` has replaced the image with a text.
                Block::Image { .. } => {}
            }
        }
        message
    }

    fn push_text(&mut self, block: &ResponseBlock) {
        if !block.citations.is_empty() {
            let before = u64::try_from(self.content.chars().count()).unwrap_or(u64::MAX);
            let citations = block.citations.iter();
            self.citations
                .extend(citations.map(|(url, title, start, end)| Citation {
                    url: url.clone(),
                    title: title.clone(),
                    start: start.saturating_add(before),
                    end: end.saturating_add(before),
                }));
        }
        self.logprobs.extend_from_slice(&block.logprobs);
        self.content.push_str(&block.text);
    }

    fn write(&self, it: &mut Object<'_>) {
        it.text("role", "assistant");
        let silent = self.content.is_empty();
        if silent && !(self.calls.is_empty() && self.refusal.is_empty()) {
            it.null("content");
        } else {
            it.text("content", &self.content);
        }
        if !self.thought.is_empty() {
            it.text("reasoning_content", &self.thought);
        }
        let refusal = Some(self.refusal.as_str()).filter(|refusal| !refusal.is_empty());
        it.text_or_null("refusal", refusal);
        if !self.calls.is_empty() {
            it.array("tool_calls", |list| {
                for call in &self.calls {
                    list.object(|it| {
                        write_call_head(it, &call.id, call.signature);
                        it.object("function", |it| {
                            it.text("name", call.name).text("arguments", call.arguments);
                        });
                    });
                }
            });
        }
        if !self.citations.is_empty() {
            it.array("annotations", |list| {
                write_annotations(list, &self.citations);
            });
        }
    }
}

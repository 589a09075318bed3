//! Writes a chat stream that clients can accumulate. The role comes once. The id, type and name of a call
//! come once. Indexes are consecutive, and arguments are always strings. Usage comes last, and only on
//! request.

use crate::byte_queue::ByteQueue;
use crate::canon::{AnswerContext, Block, Delta, Event, Opaque, Stop, Thought, Token};
use crate::chat::answer_layout::END_MARK;
use crate::chat::error::write_failure_event;
use crate::chat::request::write_extra;
use crate::chat::response::message::{
    Citation, PendingThoughts, finish_reason, write_annotations, write_call_head, write_logprobs,
};
use crate::chat::usage::write_usage;
use crate::json::write::{Object, object};
use crate::usage::Usage;

/// Writes a stream of chunks.
#[derive(Debug)]
pub struct Writer {
    context: AnswerContext,
    /// The first members, which are the same in all chunks.
    identity: Vec<u8>,
    scratch: Vec<u8>,
    block: OpenBlock,
    /// The number of calls so far, which is the index of the next call.
    calls: usize,
    carry: PendingThoughts,
    citations: Vec<Citation>,
    /// Characters of the text so far.
    chars: u64,
    /// Log probabilities to send with the next piece of text.
    tokens: Vec<Token>,
    refused: bool,
    usage: Option<Usage>,
}

#[derive(Debug, Default)]
enum OpenBlock {
    #[default]
    Nothing,
    Text {
        /// Characters before this block.
        before: u64,
    },
    Refusal,
    Thought(Thought),
    /// A call whose start is held back until the next event, which may be its signature.
    CallHeldBack {
        id: String,
        name: String,
    },
    Call {
        index: usize,
        empty: bool,
    },
}

impl Writer {
    /// A writer for one stream.
    pub fn new(context: AnswerContext) -> Self {
        let mut identity = b"data: ".to_vec();
        object(&mut identity, |it| {
            it.text("id", &context.id)
                .text("object", "chat.completion.chunk");
            it.number("created", context.created)
                .text("model", &context.model);
        });
        identity.pop();
        Self {
            context,
            identity,
            scratch: Vec::new(),
            block: OpenBlock::default(),
            calls: 0,
            carry: PendingThoughts::default(),
            citations: Vec::new(),
            chars: 0,
            tokens: Vec::new(),
            refused: false,
            usage: None,
        }
    }

    /// Writes an event.
    pub fn event(&mut self, event: Event, out: &mut ByteQueue) {
        match event {
            Event::Start => self.delta(out, |it| {
                it.text("role", "assistant").text("content", "");
            }),
            Event::BlockStart(block) => {
                self.block = match block {
                    Block::Text => OpenBlock::Text { before: self.chars },
                    Block::Refusal => OpenBlock::Refusal,
                    Block::Thought => OpenBlock::Thought(Thought::default()),
                    Block::ToolCall { id, name } => OpenBlock::CallHeldBack { id, name },
                    // `convert/transcoder.rs` has replaced the image with a text.
                    Block::Image { .. } => OpenBlock::Nothing,
                };
            }
            Event::Delta(Delta::Opaque(opaque)) => self.opaque(opaque, out),
            Event::Delta(delta) => {
                self.release(None, out);
                self.piece(delta, out);
            }
            Event::BlockStop => self.stop_block(out),
            Event::Usage(usage) => self.usage = Some(usage),
            Event::Finish(stop) => self.finish(&stop, out),
            Event::Failed(failure) => out.copy(&write_failure_event(&failure, "")),
        }
    }

    fn piece(&mut self, delta: Delta, out: &mut ByteQueue) {
        match (&mut self.block, delta) {
            (OpenBlock::Text { .. }, Delta::Text(text)) => {
                let chars = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
                self.chars = self.chars.saturating_add(chars);
                self.content(&text, out);
            }
            (OpenBlock::Text { .. }, Delta::Logprobs(tokens)) => self.tokens.extend(tokens),
            (OpenBlock::Refusal, Delta::Text(text)) => {
                self.refused = true;
                self.delta(out, |it| {
                    it.text("refusal", &text);
                });
            }
            (OpenBlock::Thought(thought), Delta::Text(text)) => {
                thought.text.push_str(&text);
                self.delta(out, |it| {
                    it.text("reasoning_content", &text);
                });
            }
            (OpenBlock::Call { index, empty }, Delta::Arguments(text)) if !text.is_empty() => {
                *empty = false;
                let index = *index;
                self.call_delta(index, out, |it| {
                    it.object("function", |it| {
                        it.text("arguments", &text);
                    });
                });
            }
            (
                OpenBlock::Text { before },
                Delta::Citation {
                    url,
                    title,
                    start,
                    end,
                },
            ) => {
                let [start, end] = [start, end].map(|offset| offset.saturating_add(*before));
                self.citations.push(Citation {
                    url,
                    title,
                    start,
                    end,
                });
            }
            _ => {}
        }
    }

    fn opaque(&mut self, opaque: Opaque, out: &mut ByteQueue) {
        match &mut self.block {
            OpenBlock::Thought(thought) => thought.opaque = Some(opaque),
            OpenBlock::CallHeldBack { .. } => self.release(Some(&opaque), out),
            // The id has already been sent without the signature. The extension member can still carry it.
            OpenBlock::Call { index, .. } => {
                let index = *index;
                self.call_delta(index, out, |it| write_extra(it, &opaque.wrap()));
            }
            OpenBlock::Nothing | OpenBlock::Text { .. } | OpenBlock::Refusal => {}
        }
    }

    /// Writes the start of a call that was held back.
    fn release(&mut self, signature: Option<&Opaque>, out: &mut ByteQueue) {
        let OpenBlock::CallHeldBack { id, name } = &mut self.block else {
            return;
        };
        let id = self.carry.encode_id(id, signature);
        let name = std::mem::take(name);
        let index = self.calls;
        self.calls = self.calls.saturating_add(1);
        self.block = OpenBlock::Call { index, empty: true };
        self.call_delta(index, out, |it| {
            write_call_head(it, &id, signature);
            it.object("function", |it| {
                it.text("name", &name).text("arguments", "");
            });
        });
    }

    fn stop_block(&mut self, out: &mut ByteQueue) {
        self.release(None, out);
        match std::mem::take(&mut self.block) {
            OpenBlock::Thought(thought) => self.carry.keep(thought),
            OpenBlock::Text { .. } if !self.tokens.is_empty() => self.content("", out),
            // Clients parse the arguments, and an empty string is not JSON.
            OpenBlock::Call { index, empty: true } => self.call_delta(index, out, |it| {
                it.object("function", |it| {
                    it.text("arguments", "{}");
                });
            }),
            _ => {}
        }
    }

    fn finish(&mut self, stop: &Stop, out: &mut ByteQueue) {
        // All citations are sent at once, because clients cannot merge lists whose items have no index.
        let citations = std::mem::take(&mut self.citations);
        if !citations.is_empty() {
            self.delta(out, |it| {
                it.array("annotations", |list| write_annotations(list, &citations));
            });
        }
        let reason = finish_reason(stop, self.refused);
        self.chunk(out, |it| {
            it.array("choices", |list| {
                list.object(|it| {
                    it.number("index", 0).object("delta", |_| {});
                    it.text("finish_reason", reason);
                });
            });
        });
        if let Some(usage) = self.usage.filter(|_| self.context.request.include_usage) {
            self.chunk(out, |it| {
                it.array("choices", |_| {});
                it.object("usage", |it| write_usage(it, &usage));
            });
        }
        out.copy(END_MARK.frame.as_bytes());
    }

    /// Writes a piece of text, with its log probabilities if the client asked for them.
    fn content(&mut self, text: &str, out: &mut ByteQueue) {
        let tokens = std::mem::take(&mut self.tokens);
        self.chunk(out, |it| {
            it.array("choices", |list| {
                list.object(|it| {
                    it.number("index", 0);
                    it.object("delta", |it| {
                        it.text("content", text);
                    });
                    if !tokens.is_empty() {
                        write_logprobs(it, &tokens);
                    }
                    it.null("finish_reason");
                });
            });
        });
    }

    fn call_delta(
        &mut self,
        index: usize,
        out: &mut ByteQueue,
        write: impl FnOnce(&mut Object<'_>),
    ) {
        self.delta(out, |it| {
            it.array("tool_calls", |list| {
                list.object(|it| {
                    it.number("index", index);
                    write(it);
                });
            });
        });
    }

    fn delta(&mut self, out: &mut ByteQueue, write: impl FnOnce(&mut Object<'_>)) {
        self.chunk(out, |it| {
            it.array("choices", |list| {
                list.object(|it| {
                    it.number("index", 0).object("delta", write);
                    it.null("finish_reason");
                });
            });
        });
    }

    fn chunk(&mut self, out: &mut ByteQueue, write: impl FnOnce(&mut Object<'_>)) {
        self.scratch.clear();
        self.scratch.extend_from_slice(&self.identity);
        Object::resume(&mut self.scratch, write);
        self.scratch.extend_from_slice(b"\n\n");
        out.copy(&self.scratch);
    }
}

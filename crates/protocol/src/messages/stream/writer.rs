//! Writes a stream out of the common form.
//!
//! Every block is complete before the next one starts, and indexes are consecutive. The signature
//! of a thought is sent in one piece at its end, because clients keep only the last one.

use crate::byte_queue::ByteQueue;
use crate::canon::{AnswerContext, Block, Delta, Event, Opaque, Stop, Thought};
use crate::dialect::Dialect;
use crate::json::write::{self, Object};
use crate::messages::error::write_failure_event;
use crate::messages::redacted;
use crate::messages::response::stop;
use crate::messages::response::write::{call_id, ended, estimate};
use crate::messages::usage::write_usage;
use crate::shared::signature;
use crate::usage::Usage;

/// Writes one stream.
#[derive(Debug)]
pub struct Writer {
    context: AnswerContext,
    open: OpenBlock,
    /// The index of the open block, or of the next one if no block is open.
    index: u64,
    refused: bool,
    /// Thoughts that the client did not ask for, until the id of a call carries them.
    hidden: Vec<Thought>,
    usage: Option<Usage>,
    /// Buffer for the current event.
    event: Vec<u8>,
}

/// The block that is open in the common form. It is started with its first delta, because clients
/// send their history back and upstreams refuse empty blocks.
#[derive(Debug)]
enum OpenBlock {
    Nothing,
    Text {
        begun: bool,
    },
    Thought {
        begun: bool,
        opaque: Option<Opaque>,
    },
    /// A thought that the client did not ask for.
    HiddenThought(Thought),
    /// A call that is not started yet. Its signature may come next and must be part of the id.
    Call {
        id: String,
        name: String,
    },
    BegunCall,
    /// A block that this dialect does not have.
    Unknown,
}

impl Writer {
    /// A writer for one stream.
    pub fn new(context: AnswerContext) -> Self {
        Self {
            context,
            open: OpenBlock::Nothing,
            index: 0,
            refused: false,
            hidden: Vec::new(),
            usage: None,
            event: Vec::with_capacity(256),
        }
    }

    /// Writes an event.
    pub fn event(&mut self, event: Event, out: &mut ByteQueue) {
        match event {
            Event::Start => self.message_start(out),
            Event::BlockStart(block) => self.open = self.opened(block),
            Event::Delta(delta) => self.delta(delta, out),
            Event::BlockStop => self.block_stop(out),
            Event::Usage(usage) => self.usage = Some(usage),
            Event::Finish(stop) => self.finish(&stop, out),
            Event::Failed(failure) => out.copy(&write_failure_event(&failure, "")),
        }
    }

    fn message_start(&mut self, out: &mut ByteQueue) {
        let Self { context, event, .. } = self;
        // The upstream usually reports the input at the end. Until then the estimate is shown.
        let usage = estimate(context);
        put(out, event, "message_start", |it| {
            it.object("message", |it| {
                it.text("id", &context.id)
                    .text("type", "message")
                    .text("role", "assistant")
                    .text("model", &context.model)
                    .raw("content", "[]")
                    .null("stop_reason")
                    .null("stop_sequence")
                    .null("stop_details")
                    .object("usage", |it| write_usage(it, &usage));
            });
        });
    }

    fn opened(&mut self, block: Block) -> OpenBlock {
        match block {
            Block::Text => OpenBlock::Text { begun: false },
            Block::Refusal => {
                self.refused = true;
                OpenBlock::Text { begun: false }
            }
            Block::Thought if !self.context.request.wants_thoughts() => {
                OpenBlock::HiddenThought(Thought::default())
            }
            Block::Thought => OpenBlock::Thought {
                begun: false,
                opaque: None,
            },
            Block::ToolCall { id, name } => OpenBlock::Call { id, name },
            Block::Image { .. } => OpenBlock::Unknown,
        }
    }

    fn delta(&mut self, delta: Delta, out: &mut ByteQueue) {
        match delta {
            Delta::Text(text) | Delta::Arguments(text) => {
                if text.is_empty() {
                    return;
                }
                if let OpenBlock::HiddenThought(thought) = &mut self.open {
                    thought.text.push_str(&text);
                    return;
                }
                self.begin(None, out);
                self.piece(&text, out);
            }
            Delta::Opaque(opaque) => match &mut self.open {
                OpenBlock::Thought { opaque: kept, .. } => *kept = Some(opaque),
                OpenBlock::HiddenThought(thought) => thought.opaque = Some(opaque),
                OpenBlock::Call { .. } => self.begin(Some(&opaque), out),
                // Texts have no member for a signature, and the id of a call that has started is already sent.
                _ => {}
            },
            // A citation requires an encrypted index, which only the vendor can create. This dialect has no
            // log probabilities.
            Delta::Citation { .. } | Delta::Logprobs(_) => {}
        }
    }

    /// Starts the open block, unless it has started.
    fn begin(&mut self, opaque: Option<&Opaque>, out: &mut ByteQueue) {
        let Self {
            open,
            event,
            index,
            hidden,
            ..
        } = self;
        match open {
            OpenBlock::Text { begun } if !*begun => {
                *begun = true;
                block_start(out, event, *index, |it| {
                    it.text("type", "text").text("text", "");
                });
            }
            OpenBlock::Thought { begun, .. } if !*begun => {
                *begun = true;
                block_start(out, event, *index, |it| {
                    it.text("type", "thinking")
                        .text("thinking", "")
                        .text("signature", "");
                });
            }
            OpenBlock::Call { id, name } => {
                let id = call_id(id, std::mem::take(hidden), opaque);
                block_start(out, event, *index, |it| {
                    it.text("type", "tool_use")
                        .text("id", &id)
                        .text("name", name)
                        .raw("input", "{}");
                });
                self.open = OpenBlock::BegunCall;
            }
            _ => {}
        }
    }

    fn piece(&mut self, text: &str, out: &mut ByteQueue) {
        let (kind, name) = match self.open {
            OpenBlock::Text { .. } => ("text_delta", "text"),
            OpenBlock::Thought { .. } => ("thinking_delta", "thinking"),
            OpenBlock::BegunCall => ("input_json_delta", "partial_json"),
            OpenBlock::Nothing
            | OpenBlock::Call { .. }
            | OpenBlock::HiddenThought(_)
            | OpenBlock::Unknown => return,
        };
        self.block_delta(kind, name, text, out);
    }

    fn block_delta(&mut self, kind: &str, name: &str, text: &str, out: &mut ByteQueue) {
        let index = self.index;
        put(out, &mut self.event, "content_block_delta", |it| {
            it.number("index", index).object("delta", |it| {
                it.text("type", kind).text(name, text);
            });
        });
    }

    fn block_stop(&mut self, out: &mut ByteQueue) {
        // A call without arguments and a thought without text start only now.
        match &mut self.open {
            OpenBlock::Call { .. } => self.begin(None, out),
            OpenBlock::Thought { begun, opaque } => {
                let begun = *begun;
                let opaque = opaque.take();
                let value = opaque.as_ref();
                let value = value.map(|opaque| signature::for_client(opaque, Dialect::Messages));
                if let (false, Some(data)) = (begun, value.as_deref().and_then(redacted::data)) {
                    self.redacted(data, out);
                } else if begun || value.is_some() {
                    self.begin(None, out);
                    let value = value.unwrap_or_default();
                    self.block_delta("signature_delta", "signature", &value, out);
                }
            }
            _ => {}
        }
        let open = std::mem::replace(&mut self.open, OpenBlock::Nothing);
        if let OpenBlock::HiddenThought(thought) = open {
            self.hidden.push(thought);
            return;
        }
        if let OpenBlock::Text { begun: true }
        | OpenBlock::Thought { begun: true, .. }
        | OpenBlock::BegunCall = open
        {
            self.close(out);
        }
    }

    fn redacted(&mut self, data: &str, out: &mut ByteQueue) {
        block_start(out, &mut self.event, self.index, |it| {
            it.text("type", "redacted_thinking").text("data", data);
        });
        self.close(out);
    }

    fn close(&mut self, out: &mut ByteQueue) {
        let index = self.index;
        put(out, &mut self.event, "content_block_stop", |it| {
            it.number("index", index);
        });
        self.index = self.index.saturating_add(1);
    }

    fn finish(&mut self, stop: &Stop, out: &mut ByteQueue) {
        let stop = ended(stop, self.refused);
        let usage = self.usage.unwrap_or(estimate(&self.context));
        put(out, &mut self.event, "message_delta", |it| {
            it.object("delta", |it| stop::write(it, &stop));
            it.object("usage", |it| write_usage(it, &usage));
        });
        put(out, &mut self.event, "message_stop", |_| {});
    }
}

fn block_start(
    out: &mut ByteQueue,
    event: &mut Vec<u8>,
    index: u64,
    block: impl FnOnce(&mut Object<'_>),
) {
    put(out, event, "content_block_start", |it| {
        it.number("index", index).object("content_block", block);
    });
}

/// Writes an event. Clients ignore events without a name.
fn put(
    out: &mut ByteQueue,
    event: &mut Vec<u8>,
    name: &str,
    members: impl FnOnce(&mut Object<'_>),
) {
    event.clear();
    event.extend_from_slice(b"event: ");
    event.extend_from_slice(name.as_bytes());
    event.extend_from_slice(b"\ndata: ");
    write::object(event, |it| {
        it.text("type", name);
        members(it);
    });
    event.extend_from_slice(b"\n\n");
    out.copy(event);
}

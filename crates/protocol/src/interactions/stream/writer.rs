//! Writes streams for clients of Interactions.

use crate::byte_queue::ByteQueue;
use crate::canon::{AnswerContext, Block, Delta, Event, OffsetConverter, Stop};
use crate::interactions::answer_layout::END_MARK;
use crate::interactions::error::write_failure_event;
use crate::interactions::response::write::{
    shows, signature_text, status, write_identity, write_source, write_times,
};
use crate::interactions::usage::write_usage;
use crate::json::write::{Object, object};
use crate::usage::Usage;

/// Writes the stream of one answer.
#[derive(Debug)]
pub struct Writer {
    context: AnswerContext,
    /// The index of the next step.
    index: u64,
    open: Option<Block>,
    /// Whether the step of the open block has started.
    begun: bool,
    /// Content that is sent as a whole, or only if it is needed: an image, a thought.
    held: String,
    offsets: OffsetConverter,
    spoke: bool,
    usage: Option<Usage>,
    ended: bool,
    scratch: Vec<u8>,
}

impl Writer {
    /// A writer for one stream.
    pub fn new(context: AnswerContext) -> Self {
        Self {
            context,
            index: 0,
            open: None,
            begun: false,
            held: String::new(),
            offsets: OffsetConverter::new(),
            spoke: false,
            usage: None,
            ended: false,
            scratch: Vec::new(),
        }
    }

    /// Writes an event.
    pub fn event(&mut self, event: Event, out: &mut ByteQueue) {
        if self.ended {
            return;
        }
        match event {
            Event::Start => self.start(out),
            Event::BlockStart(block) => {
                self.open = Some(block);
                self.begun = false;
                self.held.clear();
                self.offsets = OffsetConverter::new();
            }
            Event::Delta(delta) => self.delta(delta, out),
            Event::BlockStop => self.close(out),
            Event::Usage(usage) => self.usage = Some(usage),
            Event::Finish(stop) => self.finish(&stop, out),
            Event::Failed(failure) => {
                out.copy(&write_failure_event(&failure, ""));
                self.ended = true;
            }
        }
    }

    fn start(&mut self, out: &mut ByteQueue) {
        let Self {
            context, scratch, ..
        } = self;
        put(out, scratch, "interaction.created", |data| {
            data.object("interaction", |interaction| {
                write_identity(interaction, context);
                interaction.text("status", "in_progress");
            });
        });
        put(out, scratch, "interaction.status_update", |data| {
            data.text("interaction_id", &context.id)
                .text("status", "in_progress");
        });
    }

    fn delta(&mut self, delta: Delta, out: &mut ByteQueue) {
        match (&self.open, delta) {
            (Some(Block::Text | Block::Refusal), Delta::Text(text)) => {
                self.offsets.push(&text);
                self.spoke = true;
                self.begin(out);
                self.put_delta(out, |delta| {
                    delta.text("type", "text").text("text", &text);
                });
            }
            (Some(Block::Thought), Delta::Text(text)) => {
                if shows(&self.context) {
                    self.summary(&text, out);
                } else {
                    self.held.push_str(&text);
                }
            }
            (Some(Block::Thought), Delta::Opaque(opaque)) => {
                let held = std::mem::take(&mut self.held);
                if !held.is_empty() {
                    self.summary(&held, out);
                }
                self.sign(&signature_text(&opaque), out);
            }
            (Some(Block::ToolCall { .. }), Delta::Arguments(text)) => {
                self.begin(out);
                self.put_delta(out, |delta| {
                    delta
                        .text("type", "arguments_delta")
                        .text("arguments", &text);
                });
            }
            (Some(Block::ToolCall { .. }), Delta::Opaque(opaque)) => {
                self.sign_call(&signature_text(&opaque), out);
            }
            (Some(Block::Image { .. }), Delta::Text(text)) => self.held.push_str(&text),
            (
                Some(Block::Text),
                Delta::Citation {
                    url,
                    title,
                    start,
                    end,
                },
            ) => {
                let (start, end) = (self.offsets.bytes(start), self.offsets.bytes(end));
                if let (Some(start), Some(end)) = (start, end) {
                    self.begin(out);
                    self.put_delta(out, |delta| {
                        delta.text("type", "text_annotation_delta");
                        delta.array("annotations", |list| {
                            list.object(|source| write_source(source, &url, &title, start, end));
                        });
                    });
                }
            }
            _ => {}
        }
    }

    fn summary(&mut self, text: &str, out: &mut ByteQueue) {
        self.begin(out);
        self.put_delta(out, |delta| {
            delta.text("type", "thought_summary");
            delta.object("content", |content| {
                content.text("type", "text").text("text", text);
            });
        });
    }

    fn sign(&mut self, signature: &str, out: &mut ByteQueue) {
        self.begin(out);
        self.put_delta(out, |delta| {
            delta
                .text("type", "thought_signature")
                .text("signature", signature);
        });
    }

    /// Sends the signature of a call, on a thought before the call. This is possible until the call
    /// has started.
    fn sign_call(&mut self, signature: &str, out: &mut ByteQueue) {
        if self.begun {
            return;
        }
        let call = self.open.replace(Block::Thought);
        self.sign(signature, out);
        self.stop(out);
        self.open = call;
    }

    fn close(&mut self, out: &mut ByteQueue) {
        match &self.open {
            Some(Block::Image { mime }) => {
                let (mime, data) = (mime.clone(), std::mem::take(&mut self.held));
                self.begin(out);
                self.put_delta(out, |delta| {
                    delta.text("type", "image").text("mime_type", &mime);
                    delta.text("data", &data);
                });
            }
            // A call without arguments has not started its step yet.
            Some(Block::ToolCall { .. }) => self.begin(out),
            _ => {}
        }
        self.stop(out);
        self.open = None;
    }

    /// Starts the step once it is certain to have content.
    fn begin(&mut self, out: &mut ByteQueue) {
        let Some(block) = &self.open else {
            return;
        };
        if self.begun {
            return;
        }
        self.begun = true;
        let index = self.index;
        put(out, &mut self.scratch, "step.start", |data| {
            data.number("index", index);
            data.object("step", |step| match block {
                Block::Text | Block::Refusal | Block::Image { .. } => {
                    step.text("type", "model_output");
                }
                Block::Thought => {
                    step.text("type", "thought");
                }
                Block::ToolCall { id, name } => {
                    step.text("type", "function_call")
                        .text("id", id)
                        .text("name", name);
                    step.object("arguments", |_| {});
                }
            });
        });
    }

    /// Ends the step, if it has started.
    fn stop(&mut self, out: &mut ByteQueue) {
        if !std::mem::take(&mut self.begun) {
            return;
        }
        let index = self.index;
        self.index += 1;
        put(out, &mut self.scratch, "step.stop", |data| {
            data.number("index", index);
        });
    }

    fn put_delta(&mut self, out: &mut ByteQueue, write: impl FnOnce(&mut Object<'_>)) {
        let index = self.index;
        put(out, &mut self.scratch, "step.delta", |data| {
            data.number("index", index).object("delta", write);
        });
    }

    fn finish(&mut self, stop: &Stop, out: &mut ByteQueue) {
        let Self {
            context,
            scratch,
            usage,
            spoke,
            ..
        } = self;
        put(out, scratch, "interaction.completed", |data| {
            data.object("interaction", |interaction| {
                write_identity(interaction, context);
                interaction.text("status", status(stop, *spoke));
                write_times(interaction, context);
                if let Some(usage) = usage {
                    interaction.value("usage", |out| write_usage(out, usage));
                }
            });
        });
        out.copy(END_MARK.frame.as_bytes());
        self.ended = true;
    }
}

/// Writes an event. Clients read the type inside the data, not the name of the event.
fn put(
    out: &mut ByteQueue,
    scratch: &mut Vec<u8>,
    name: &str,
    write: impl FnOnce(&mut Object<'_>),
) {
    scratch.clear();
    scratch.extend_from_slice(b"event: ");
    scratch.extend_from_slice(name.as_bytes());
    scratch.extend_from_slice(b"\ndata: ");
    object(scratch, |data| {
        data.text("event_type", name);
        write(data);
    });
    scratch.extend_from_slice(b"\n\n");
    out.copy(scratch);
}

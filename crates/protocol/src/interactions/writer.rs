//! Writes answers for callers of Interactions, whole or as events.

use crate::canon::{Block, Delta, Echo, Event, Folded, Offsets, Opaque, Response, Stop, arguments};
use crate::dialect::Dialect;
use crate::joined::Joined;
use crate::json::write::{Array, Object, object};
use crate::signature;
use crate::usage::Usage;

use super::error::write_failure_event;
use super::places::DONE;
use super::time::iso;
use super::usage::write_usage;

/// Writes a whole answer.
pub fn write_response(response: &Response, echo: &Echo) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    object(&mut out, |body| {
        write_identity(body, echo);
        body.text(
            "status",
            status(&response.stop, response.blocks.iter().any(speaks)),
        );
        write_times(body, echo);
        body.array("steps", |steps| {
            for folded in &response.blocks {
                write_step(steps, folded, echo);
            }
        });
        if let Some(usage) = &response.usage {
            body.value("usage", |out| write_usage(out, usage));
        }
    });
    out
}

fn speaks(folded: &Folded) -> bool {
    matches!(folded.block, Block::Text | Block::Refusal) && !folded.text.is_empty()
}

fn write_identity(body: &mut Object<'_>, echo: &Echo) {
    body.text("id", &echo.id).text("object", "interaction");
    body.text("model", &echo.model);
}

fn write_times(body: &mut Object<'_>, echo: &Echo) {
    let created = iso(echo.created);
    body.text("created", &created).text("updated", &created);
}

fn status(stop: &Stop, spoke: bool) -> &'static str {
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

fn write_step(steps: &mut Array<'_>, folded: &Folded, echo: &Echo) {
    let signature = folded.opaque.as_ref().map(told);
    match &folded.block {
        Block::Text | Block::Refusal => {
            if folded.text.is_empty() {
                return;
            }
            spoken(steps, |content| {
                content.text("type", "text").text("text", &folded.text);
                write_sources(content, folded);
            });
        }
        Block::Image { mime } => spoken(steps, |content| {
            content.text("type", "image").text("mime_type", mime);
            content.text("data", &folded.text);
        }),
        Block::Thought => {
            // Without a signature, thoughts are for those who asked for them.
            if signature.is_some() || (shows(echo) && !folded.text.is_empty()) {
                write_thought(steps, signature.as_deref(), &folded.text);
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
                step.raw("arguments", &arguments::object(&folded.text));
            });
        }
    }
}

fn spoken(steps: &mut Array<'_>, write: impl FnOnce(&mut Object<'_>)) {
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

fn write_sources(content: &mut Object<'_>, folded: &Folded) {
    let mut offsets = Offsets::new();
    offsets.push(&folded.text);
    let sources = folded
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

fn write_source(source: &mut Object<'_>, url: &str, title: &str, start: u64, end: u64) {
    source
        .text("type", "url_citation")
        .text("url", url)
        .text("title", title);
    source.number("start_index", start).number("end_index", end);
}

fn told(opaque: &Opaque) -> String {
    signature::told(opaque, Dialect::Interactions).into_owned()
}

/// Whether the caller asked for thoughts.
fn shows(echo: &Echo) -> bool {
    let reasoning = echo.request.reasoning.as_ref();
    reasoning.is_some_and(|reasoning| reasoning.show)
}

/// Writes a stream.
#[derive(Debug)]
pub struct Writer {
    echo: Echo,
    /// The number of the next step.
    index: u64,
    open: Option<Block>,
    /// Whether the open block has been told as a step.
    begun: bool,
    /// What is told only when it is known to be wanted, or whole: a thought, a picture.
    held: String,
    offsets: Offsets,
    spoke: bool,
    usage: Option<Usage>,
    ended: bool,
    scratch: Vec<u8>,
}

impl Writer {
    /// A writer for one stream.
    pub fn new(echo: Echo) -> Self {
        Self {
            echo,
            index: 0,
            open: None,
            begun: false,
            held: String::new(),
            offsets: Offsets::new(),
            spoke: false,
            usage: None,
            ended: false,
            scratch: Vec::new(),
        }
    }

    /// Writes an event.
    pub fn event(&mut self, event: Event, out: &mut Joined) {
        if self.ended {
            return;
        }
        match event {
            Event::Start => self.start(out),
            Event::BlockStart(block) => {
                self.open = Some(block);
                self.begun = false;
                self.held.clear();
                self.offsets = Offsets::new();
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

    fn start(&mut self, out: &mut Joined) {
        let Self { echo, scratch, .. } = self;
        put(out, scratch, "interaction.created", |data| {
            data.object("interaction", |interaction| {
                write_identity(interaction, echo);
                interaction.text("status", "in_progress");
            });
        });
        put(out, scratch, "interaction.status_update", |data| {
            data.text("interaction_id", &echo.id)
                .text("status", "in_progress");
        });
    }

    fn delta(&mut self, delta: Delta, out: &mut Joined) {
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
                if shows(&self.echo) {
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
                self.sign(&told(&opaque), out);
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
                self.sign_call(&told(&opaque), out);
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

    fn summary(&mut self, text: &str, out: &mut Joined) {
        self.begin(out);
        self.put_delta(out, |delta| {
            delta.text("type", "thought_summary");
            delta.object("content", |content| {
                content.text("type", "text").text("text", text);
            });
        });
    }

    fn sign(&mut self, signature: &str, out: &mut Joined) {
        self.begin(out);
        self.put_delta(out, |delta| {
            delta
                .text("type", "thought_signature")
                .text("signature", signature);
        });
    }

    /// The signature of a call stands on a thought before it, and can do so as long as the call
    /// has not begun.
    fn sign_call(&mut self, signature: &str, out: &mut Joined) {
        if self.begun {
            return;
        }
        let call = self.open.replace(Block::Thought);
        self.sign(signature, out);
        self.stop(out);
        self.open = call;
    }

    fn close(&mut self, out: &mut Joined) {
        match &self.open {
            Some(Block::Image { mime }) => {
                let (mime, data) = (mime.clone(), std::mem::take(&mut self.held));
                self.begin(out);
                self.put_delta(out, |delta| {
                    delta.text("type", "image").text("mime_type", &mime);
                    delta.text("data", &data);
                });
            }
            // A call without arguments is one all the same.
            Some(Block::ToolCall { .. }) => self.begin(out),
            _ => {}
        }
        self.stop(out);
        self.open = None;
    }

    /// Tells that a step begins, once it is sure to have something in it.
    fn begin(&mut self, out: &mut Joined) {
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

    /// Tells that the step is over, if it has begun.
    fn stop(&mut self, out: &mut Joined) {
        if !std::mem::take(&mut self.begun) {
            return;
        }
        let index = self.index;
        self.index += 1;
        put(out, &mut self.scratch, "step.stop", |data| {
            data.number("index", index);
        });
    }

    fn put_delta(&mut self, out: &mut Joined, write: impl FnOnce(&mut Object<'_>)) {
        let index = self.index;
        put(out, &mut self.scratch, "step.delta", |data| {
            data.number("index", index).object("delta", write);
        });
    }

    fn finish(&mut self, stop: &Stop, out: &mut Joined) {
        let Self {
            echo,
            scratch,
            usage,
            spoke,
            ..
        } = self;
        put(out, scratch, "interaction.completed", |data| {
            data.object("interaction", |interaction| {
                write_identity(interaction, echo);
                interaction.text("status", status(stop, *spoke));
                write_times(interaction, echo);
                if let Some(usage) = usage {
                    interaction.value("usage", |out| write_usage(out, usage));
                }
            });
        });
        out.copy(DONE.frame.as_bytes());
        self.ended = true;
    }
}

/// Puts out an event. Clients go by the type inside the data, not by the event's name.
fn put(out: &mut Joined, scratch: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Object<'_>)) {
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

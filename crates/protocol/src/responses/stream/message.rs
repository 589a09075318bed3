//! Writes a message of a stream, part by part.

use super::sender::EventSender;
use crate::byte_queue::ByteQueue;
use crate::canon::{Delta, Opaque, Token};
use crate::json::write;
use crate::responses::response::output;

/// A message. It stays open after its last part, because another part may follow.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: String,
    /// The complete parts, as a list without brackets.
    pub(super) parts: Vec<u8>,
    count: u64,
    part: Option<OpenPart>,
}

#[derive(Debug)]
struct OpenPart {
    is_refusal: bool,
    text: String,
    /// A list without brackets.
    annotations: Vec<u8>,
    annotation_count: u64,
    /// A list without brackets.
    logprobs: Vec<u8>,
    /// Log probabilities that have not been sent with a piece of text yet.
    unsent_logprobs: Vec<Token>,
    opaque: Option<Opaque>,
}

impl Message {
    pub(super) fn new(id: String) -> Self {
        Self {
            id,
            parts: Vec::new(),
            count: 0,
            part: None,
        }
    }

    /// Whether the open part is a refusal.
    pub(super) fn is_refusing(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.is_refusal)
    }

    pub(super) fn open_part(
        &mut self,
        is_refusal: bool,
        index: u64,
        sender: &mut EventSender,
        out: &mut ByteQueue,
    ) {
        sender.send(out, "response.content_part.added", |it| {
            in_message(it, &self.id, (index, self.count));
            it.value("part", |out| output::part(out, is_refusal, "", b"", b""));
        });
        self.part = Some(OpenPart {
            is_refusal,
            text: String::new(),
            annotations: Vec::new(),
            annotation_count: 0,
            logprobs: Vec::new(),
            unsent_logprobs: Vec::new(),
            opaque: None,
        });
    }

    /// Continues the open part. `index` is the position of the message in the output.
    pub(super) fn delta(
        &mut self,
        delta: Delta,
        index: u64,
        sender: &mut EventSender,
        out: &mut ByteQueue,
    ) {
        let place = (index, self.count);
        let Some(part) = &mut self.part else {
            return;
        };
        match delta {
            Delta::Text(more) if !more.is_empty() => {
                let mut logprobs = Vec::new();
                output::push_logprobs(&mut logprobs, &std::mem::take(&mut part.unsent_logprobs));
                let name = if part.is_refusal {
                    "response.refusal.delta"
                } else {
                    "response.output_text.delta"
                };
                sender.send(out, name, |it| {
                    in_message(it, &self.id, place);
                    it.text("delta", &more);
                    if !part.is_refusal {
                        it.value("logprobs", |out| output::list(out, &logprobs));
                    }
                });
                part.text.push_str(&more);
            }
            Delta::Citation {
                url,
                title,
                start,
                end,
            } => {
                let before = part.annotations.len();
                output::push_annotation(&mut part.annotations, &url, &title, start, end);
                let written = part.annotations.get(before..).unwrap_or_default();
                let written = written.strip_prefix(b",").unwrap_or(written);
                sender.send(out, "response.output_text.annotation.added", |it| {
                    in_message(it, &self.id, place);
                    it.number("annotation_index", part.annotation_count);
                    it.value("annotation", |out| out.extend_from_slice(written));
                });
                part.annotation_count = part.annotation_count.saturating_add(1);
            }
            Delta::Logprobs(tokens) => {
                output::push_logprobs(&mut part.logprobs, &tokens);
                part.unsent_logprobs.extend(tokens);
            }
            Delta::Opaque(opaque) => part.opaque = Some(opaque),
            Delta::Text(_) | Delta::Arguments(_) => {}
        }
    }

    /// Closes the open part and returns its signature.
    pub(super) fn close_part(
        &mut self,
        index: u64,
        sender: &mut EventSender,
        out: &mut ByteQueue,
    ) -> Option<Opaque> {
        let place = (index, self.count);
        let part = self.part.take()?;
        if part.is_refusal {
            sender.send(out, "response.refusal.done", |it| {
                in_message(it, &self.id, place);
                it.text("refusal", &part.text);
            });
        } else {
            sender.send(out, "response.output_text.done", |it| {
                in_message(it, &self.id, place);
                it.text("text", &part.text);
                it.value("logprobs", |out| output::list(out, &part.logprobs));
            });
        }
        if self.count > 0 {
            self.parts.push(b',');
        }
        let start = self.parts.len();
        output::part(
            &mut self.parts,
            part.is_refusal,
            &part.text,
            &part.annotations,
            &part.logprobs,
        );
        let written = self.parts.get(start..).unwrap_or_default();
        sender.send(out, "response.content_part.done", |it| {
            in_message(it, &self.id, place);
            it.value("part", |out| out.extend_from_slice(written));
        });
        self.count = self.count.saturating_add(1);
        part.opaque
    }
}

/// Writes the position of a part: the id and position of its item, and its own position.
fn in_message(it: &mut write::Object<'_>, id: &str, (output, content): (u64, u64)) {
    it.text("item_id", id).number("output_index", output);
    it.number("content_index", content);
}

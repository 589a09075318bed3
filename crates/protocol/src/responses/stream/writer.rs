//! Writes events of the common form as a stream of Responses events.
//!
//! Clients assemble the answer from these events and check them strictly. Every item is added before it
//! grows, and completed before the next one starts. The last event repeats all items. The id of an item never
//! changes.

use super::message::Message;
use super::sender::EventSender;
use crate::byte_queue::ByteQueue;
use crate::canon::{AnswerContext, Block, Delta, Event, Opaque, Stop};
use crate::failure::Failure;
use crate::json::write;
use crate::responses::error::write_first_failure;
use crate::responses::response::{ContentKinds, Ending, ItemId, Object, output};
use crate::usage::Usage;

/// Writes one stream.
#[derive(Debug)]
pub struct Writer {
    object: Object,
    ids: ItemId,
    sender: EventSender,
    has_begun: bool,
    /// The output so far, as a list without brackets.
    output: Vec<u8>,
    /// The number of items so far.
    count: u64,
    open: OpenItem,
    usage: Option<Usage>,
    said: ContentKinds,
}

#[derive(Debug)]
enum OpenItem {
    Nothing,
    Message(Message),
    Thought {
        id: String,
        text: String,
        opaque: Option<Opaque>,
    },
    /// A call is added with the first piece of its arguments, because its signature may arrive earlier and
    /// must be sent ahead of the call.
    Call {
        call_id: String,
        name: String,
        /// The item's id, once it is added.
        id: Option<String>,
        arguments: String,
        opaque: Option<Opaque>,
    },
    /// A block that this dialect cannot represent.
    Unsupported,
}

impl Writer {
    /// A writer for one stream.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the writers of all dialects are made alike, and others keep it"
    )]
    pub fn new(context: AnswerContext) -> Self {
        Self {
            object: Object::new(&context),
            ids: ItemId::new(&context.id),
            sender: EventSender::default(),
            has_begun: false,
            output: Vec::new(),
            count: 0,
            open: OpenItem::Nothing,
            usage: None,
            said: ContentKinds::default(),
        }
    }

    /// Takes the next event.
    pub fn event(&mut self, event: Event, out: &mut ByteQueue) {
        match event {
            Event::Start => self.begin(out),
            Event::BlockStart(block) => self.start(block, out),
            Event::Delta(delta) => self.delta(delta, out),
            Event::BlockStop => self.stop(out),
            Event::Usage(usage) => self.usage = Some(usage),
            Event::Finish(stop) => self.finish(&stop, out),
            Event::Failed(failure) => self.fail(&failure, out),
        }
    }

    fn begin(&mut self, out: &mut ByteQueue) {
        self.has_begun = true;
        for name in ["response.created", "response.in_progress"] {
            let object = &self.object;
            self.sender.send(out, name, |it| {
                it.value("response", |out| {
                    object.write(out, &Ending::InProgress, b"", None);
                });
            });
        }
    }

    fn start(&mut self, block: Block, out: &mut ByteQueue) {
        let is_refusal = block == Block::Refusal;
        match block {
            Block::Text | Block::Refusal => self.start_part(is_refusal, out),
            Block::Thought => {
                self.close_message("completed", out);
                let id = self.ids.at("rs", self.count);
                self.add(out, |out| output::reasoning(out, &id, "", None));
                self.open = OpenItem::Thought {
                    id,
                    text: String::new(),
                    opaque: None,
                };
            }
            Block::ToolCall { id, name } => {
                self.close_message("completed", out);
                self.open = OpenItem::Call {
                    call_id: id,
                    name,
                    id: None,
                    arguments: String::new(),
                    opaque: None,
                };
            }
            Block::Image { .. } => {
                self.close_message("completed", out);
                self.open = OpenItem::Unsupported;
            }
        }
    }

    fn start_part(&mut self, is_refusal: bool, out: &mut ByteQueue) {
        if !matches!(self.open, OpenItem::Message(_)) {
            let id = self.ids.at("msg", self.count);
            self.add(out, |out| output::message(out, &id, "in_progress", b""));
            self.open = OpenItem::Message(Message::new(id));
        }
        if let OpenItem::Message(message) = &mut self.open {
            message.open_part(is_refusal, self.count, &mut self.sender, out);
        }
    }

    fn delta(&mut self, delta: Delta, out: &mut ByteQueue) {
        match (&mut self.open, delta) {
            (OpenItem::Message(message), delta) => {
                if let Delta::Text(text) = &delta {
                    self.said.note(message.is_refusing(), text);
                }
                message.delta(delta, self.count, &mut self.sender, out);
            }
            (OpenItem::Thought { id, text, .. }, Delta::Text(more)) if !more.is_empty() => {
                let (id, index) = (id.as_str(), self.count);
                if text.is_empty() {
                    let name = "response.reasoning_summary_part.added";
                    self.sender.send(out, name, |it| {
                        in_summary(it, id, index);
                        it.value("part", |out| output::summary(out, ""));
                    });
                }
                let name = "response.reasoning_summary_text.delta";
                self.sender.send(out, name, |it| {
                    in_summary(it, id, index);
                    it.text("delta", &more);
                });
                text.push_str(&more);
            }
            (
                OpenItem::Thought { opaque, .. } | OpenItem::Call { opaque, .. },
                Delta::Opaque(value),
            ) => {
                *opaque = Some(value);
            }
            (OpenItem::Call { .. }, Delta::Arguments(more)) if !more.is_empty() => {
                self.push_arguments(&more, out);
            }
            _ => {}
        }
    }

    /// Appends to a call's arguments, and adds the call before the first piece of them.
    fn push_arguments(&mut self, more: &str, out: &mut ByteQueue) {
        if let OpenItem::Call {
            id: None, opaque, ..
        } = &mut self.open
        {
            if let Some(opaque) = opaque.take() {
                self.send_signature(&opaque, out);
            }
            let item = self.ids.at("fc", self.count);
            if let OpenItem::Call {
                call_id, name, id, ..
            } = &mut self.open
            {
                self.sender.added(out, self.count, |out| {
                    output::call(out, &item, call_id, name, "", "in_progress");
                });
                *id = Some(item);
            }
        }
        if let OpenItem::Call {
            id: Some(id),
            arguments,
            ..
        } = &mut self.open
        {
            let name = "response.function_call_arguments.delta";
            self.sender.send(out, name, |it| {
                it.text("item_id", id).number("output_index", self.count);
                it.text("delta", more);
            });
            arguments.push_str(more);
        }
    }

    fn stop(&mut self, out: &mut ByteQueue) {
        if let OpenItem::Call { arguments, .. } = &self.open
            && arguments.is_empty()
        {
            self.push_arguments("{}", out);
        }
        match std::mem::replace(&mut self.open, OpenItem::Nothing) {
            OpenItem::Message(mut message) => {
                let opaque = message.close_part(self.count, &mut self.sender, out);
                self.open = OpenItem::Message(message);
                if let Some(opaque) = opaque {
                    self.close_message("completed", out);
                    self.send_signature(&opaque, out);
                }
            }
            OpenItem::Thought { id, text, opaque } => {
                self.close_thought(&id, &text, opaque.as_ref(), out);
            }
            OpenItem::Call {
                call_id,
                name,
                id: Some(id),
                arguments,
                opaque,
            } => {
                let event = "response.function_call_arguments.done";
                self.sender.send(out, event, |it| {
                    it.text("item_id", &id).number("output_index", self.count);
                    it.text("name", &name).text("arguments", &arguments);
                });
                self.done(out, |out| {
                    output::call(out, &id, &call_id, &name, &arguments, "completed");
                });
                // The signature arrived too late to be sent before its call.
                if let Some(opaque) = opaque {
                    self.send_signature(&opaque, out);
                }
            }
            OpenItem::Nothing | OpenItem::Unsupported | OpenItem::Call { id: None, .. } => {}
        }
    }

    fn close_thought(
        &mut self,
        id: &str,
        text: &str,
        opaque: Option<&Opaque>,
        out: &mut ByteQueue,
    ) {
        let index = self.count;
        if !text.is_empty() {
            let name = "response.reasoning_summary_text.done";
            self.sender.send(out, name, |it| {
                in_summary(it, id, index);
                it.text("text", text);
            });
            let name = "response.reasoning_summary_part.done";
            self.sender.send(out, name, |it| {
                in_summary(it, id, index);
                it.value("part", |out| output::summary(out, text));
            });
        }
        let encrypted = opaque.map(output::encrypted_content);
        self.done(out, |out| {
            output::reasoning(out, id, text, encrypted.as_deref());
        });
    }

    /// Sends a signature that does not belong to a thought, as a reasoning item of its own.
    fn send_signature(&mut self, opaque: &Opaque, out: &mut ByteQueue) {
        let id = self.ids.at("rs", self.count);
        self.add(out, |out| output::reasoning(out, &id, "", None));
        self.done(out, |out| {
            output::reasoning(out, &id, "", Some(&output::encrypted_content(opaque)));
        });
    }

    fn close_message(&mut self, status: &str, out: &mut ByteQueue) {
        if let OpenItem::Message(message) = std::mem::replace(&mut self.open, OpenItem::Nothing) {
            self.done(out, |out| {
                output::message(out, &message.id, status, &message.parts);
            });
        }
    }

    fn add(&mut self, out: &mut ByteQueue, item: impl FnOnce(&mut Vec<u8>)) {
        self.sender.added(out, self.count, item);
    }

    /// Completes the open item and adds it to the output.
    fn done(&mut self, out: &mut ByteQueue, item: impl FnOnce(&mut Vec<u8>)) {
        if self.count > 0 {
            self.output.push(b',');
        }
        let start = self.output.len();
        item(&mut self.output);
        let written = self.output.get(start..).unwrap_or_default();
        self.sender.send(out, "response.output_item.done", |it| {
            it.number("output_index", self.count);
            it.value("item", |out| out.extend_from_slice(written));
        });
        self.count = self.count.saturating_add(1);
    }

    fn finish(&mut self, stop: &Stop, out: &mut ByteQueue) {
        if let Some(words) = self.said.missing_refusal(stop) {
            self.start_part(true, out);
            self.delta(Delta::Text(words.to_owned()), out);
            self.stop(out);
        }
        let ending = Ending::of(stop, self.said);
        self.close_message(ending.item_status(), out);
        self.end(&ending, out);
    }

    fn fail(&mut self, failure: &Failure, out: &mut ByteQueue) {
        if self.has_begun {
            self.end(&Ending::Failed(failure), out);
        } else {
            out.copy(&write_first_failure(failure, self.sender.sequence));
        }
    }

    fn end(&mut self, ending: &Ending<'_>, out: &mut ByteQueue) {
        self.sender.send(out, ending.event(), |it| {
            it.value("response", |out| {
                self.object
                    .write(out, ending, &self.output, self.usage.as_ref());
            });
        });
    }
}

/// Writes the position of the only part of a summary.
fn in_summary(it: &mut write::Object<'_>, id: &str, output: u64) {
    it.text("item_id", id).number("output_index", output);
    it.number("summary_index", 0);
}

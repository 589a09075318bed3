//! Writes a whole response as the events of a stream. The members keep their bytes.

use crate::answer_layout::{Events, each_item};
use crate::json::write::Object;
use crate::json::{Raw, RawObject, Shape};
use crate::unusable_answer::UnusableAnswer;

/// Longer item ids are not repeated in each event.
const ITEM_ID_BYTES_MAX: usize = 256;

/// Writes the events of a response. Each item and each of its parts is added, filled and completed.
/// The last event repeats all of them.
#[cold]
pub(crate) fn write_events(answer: Raw<'_>, events: &mut Events<'_>) -> Result<(), UnusableAnswer> {
    let response = RawObject::of(answer).ok_or_else(|| UnusableAnswer::malformed("no response"))?;
    let end = match response.string("status") {
        Some(status) if status.is("incomplete") => "response.incomplete",
        Some(status) if !status.is("completed") => {
            return Err(UnusableAnswer::malformed("the response is not complete"));
        }
        _ => "response.completed",
    };
    let mut stream = Stream {
        events,
        sequence: 0,
    };
    for name in ["response.created", "response.in_progress"] {
        stream.send(name, |it| {
            it.object("response", |it| {
                let changes = [
                    ("status", None),
                    ("output", Some("[]")),
                    ("usage", Some("null")),
                    ("completed_at", Some("null")),
                    ("incomplete_details", Some("null")),
                ];
                response.write_to(it, &changes);
                it.text("status", "in_progress");
            });
        })?;
    }
    if let Some(output) = response.get("output") {
        each_item(output, |index, item| stream.item(index, item))?;
    }
    stream.send(end, |it| {
        it.raw("response", answer.text());
    })
}

/// A member with text, and the events that send it.
struct TextMember {
    name: &'static str,
    delta: &'static str,
    done: &'static str,
}

const OUTPUT_TEXT: TextMember = TextMember {
    name: "text",
    delta: "response.output_text.delta",
    done: "response.output_text.done",
};
const REFUSAL: TextMember = TextMember {
    name: "refusal",
    delta: "response.refusal.delta",
    done: "response.refusal.done",
};
const REASONING: TextMember = TextMember {
    name: "text",
    delta: "response.reasoning_text.delta",
    done: "response.reasoning_text.done",
};
const SUMMARY: TextMember = TextMember {
    name: "text",
    delta: "response.reasoning_summary_text.delta",
    done: "response.reasoning_summary_text.done",
};
const ARGUMENTS: TextMember = TextMember {
    name: "arguments",
    delta: "response.function_call_arguments.delta",
    done: "response.function_call_arguments.done",
};
const TOOL_INPUT: TextMember = TextMember {
    name: "input",
    delta: "response.custom_tool_call_input.delta",
    done: "response.custom_tool_call_input.done",
};

/// A list of parts in an item, and the events that start and end a part.
struct PartList {
    member: &'static str,
    index: &'static str,
    added: &'static str,
    done: &'static str,
}

const CONTENT: PartList = PartList {
    member: "content",
    index: "content_index",
    added: "response.content_part.added",
    done: "response.content_part.done",
};
const SUMMARIES: PartList = PartList {
    member: "summary",
    index: "summary_index",
    added: "response.reasoning_summary_part.added",
    done: "response.reasoning_summary_part.done",
};

struct Stream<'s, 'e> {
    events: &'s mut Events<'e>,
    /// The number of the next event.
    sequence: u64,
}

/// The item and the part that an event belongs to.
#[derive(Clone, Copy)]
struct ItemPosition<'a> {
    item_id: Option<Raw<'a>>,
    output_index: usize,
    /// The member with the index of the part, and the index.
    part: Option<(&'static str, usize)>,
}

impl ItemPosition<'_> {
    fn write(&self, it: &mut Object<'_>) {
        if let Some(id) = self.item_id {
            it.raw("item_id", id.text());
        }
        it.number("output_index", self.output_index);
        if let Some((name, index)) = self.part {
            it.number(name, index);
        }
    }
}

impl Stream<'_, '_> {
    fn send(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Object<'_>),
    ) -> Result<(), UnusableAnswer> {
        let sequence = self.sequence;
        self.sequence += 1;
        self.events.named("type", name, |it| {
            it.number("sequence_number", sequence);
            write(it);
        })
    }

    fn item(&mut self, output_index: usize, item: Raw<'_>) -> Result<(), UnusableAnswer> {
        let read = RawObject::of(item)
            .ok_or_else(|| UnusableAnswer::malformed("an item is not an object"))?;
        let id = read.filled("id", Shape::String);
        let position = ItemPosition {
            item_id: id.filter(|id| id.text().len() <= ITEM_ID_BYTES_MAX),
            output_index,
            part: None,
        };
        let parts: &[_] = match read.string("type") {
            Some(kind) if kind.is("message") => &[CONTENT],
            Some(kind) if kind.is("reasoning") => &[SUMMARIES, CONTENT],
            _ => &[],
        };
        let text_member = match read.string("type") {
            Some(kind) if kind.is("function_call") => Some(ARGUMENTS),
            Some(kind) if kind.is("custom_tool_call") => Some(TOOL_INPUT),
            _ => None,
        };
        // Large members without events of their own are only in the finished item.
        let mut changes = vec![
            ("encrypted_content", Some("null")),
            ("result", Some("null")),
            ("status", Some("\"in_progress\"")),
        ];
        changes.extend(parts.iter().map(|list| (list.member, Some("[]"))));
        changes.extend(
            text_member
                .iter()
                .map(|text_member| (text_member.name, Some("\"\""))),
        );
        self.send("response.output_item.added", |it| {
            it.number("output_index", output_index);
            it.object("item", |it| read.write_to(it, &changes));
        })?;
        for list in parts {
            if let Some(items) = read.filled(list.member, Shape::Array) {
                each_item(items, |index, part| {
                    let part_position = ItemPosition {
                        part: Some((list.index, index)),
                        ..position
                    };
                    self.part(list, part_position, part)
                })?;
            }
        }
        if let Some(text_member) = text_member {
            self.send_text(&text_member, position, &read, &["name"])?;
        }
        self.send("response.output_item.done", |it| {
            it.number("output_index", output_index);
            it.raw("item", item.text());
        })
    }

    fn part(
        &mut self,
        list: &PartList,
        position: ItemPosition<'_>,
        part: Raw<'_>,
    ) -> Result<(), UnusableAnswer> {
        let read = RawObject::of(part)
            .ok_or_else(|| UnusableAnswer::malformed("a part is not an object"))?;
        let text_member = match read.string("type") {
            Some(kind) if kind.is("output_text") => Some(OUTPUT_TEXT),
            Some(kind) if kind.is("refusal") => Some(REFUSAL),
            Some(kind) if kind.is("reasoning_text") => Some(REASONING),
            Some(kind) if kind.is("summary_text") => Some(SUMMARY),
            // Other parts have no events of their own.
            _ => None,
        };
        let mut changes = Vec::new();
        if let Some(text_member) = &text_member {
            changes.push((text_member.name, Some("\"\"")));
            changes.extend(["annotations", "logprobs"].map(|name| (name, Some("[]"))));
        }
        self.send(list.added, |it| {
            position.write(it);
            it.object("part", |it| read.write_to(it, &changes));
        })?;
        if let Some(text_member) = &text_member {
            self.send_text(text_member, position, &read, &["logprobs"])?;
        }
        self.send(list.done, |it| {
            position.write(it);
            it.raw("part", part.text());
        })
    }

    /// Sends a text as one delta, then its annotations, then the whole text. The members named in
    /// `beside` are repeated next to the delta and the whole text.
    fn send_text(
        &mut self,
        text_member: &TextMember,
        position: ItemPosition<'_>,
        object: &RawObject<'_>,
        beside: &[&str],
    ) -> Result<(), UnusableAnswer> {
        let text = object
            .get(text_member.name)
            .filter(|text| text.shape() == Shape::String);
        let Some(text) = text else {
            let why = format!("`{}` is not a string", text_member.name);
            return Err(UnusableAnswer::malformed(why));
        };
        let write_beside = |it: &mut Object<'_>| {
            for name in beside {
                match object.get(name) {
                    Some(value) => drop(it.raw(name, value.text())),
                    // Clients require the list.
                    None if text_member.delta == OUTPUT_TEXT.delta => drop(it.array(name, |_| {})),
                    None => {}
                }
            }
        };
        if !text.is_empty() {
            self.send(text_member.delta, |it| {
                position.write(it);
                it.raw("delta", text.text());
                write_beside(it);
            })?;
        }
        if let Some(annotations) = object.filled("annotations", Shape::Array) {
            each_item(annotations, |index, annotation| {
                self.send("response.output_text.annotation.added", |it| {
                    position.write(it);
                    it.number("annotation_index", index);
                    it.raw("annotation", annotation.text());
                })
            })?;
        }
        self.send(text_member.done, |it| {
            position.write(it);
            it.raw(text_member.name, text.text());
            write_beside(it);
        })
    }
}

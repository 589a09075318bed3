//! Reads a stream of Responses events into the events of the common form.

use std::borrow::Cow;

use super::items::{Address, ITEMS_MAX, Items};
use crate::canon::{Event, Token};
use crate::json::{Cursor, Integer, Raw, typed, utf8};
use crate::rejection;
use crate::responses::response::{Answer, Citation, Item, Part, skip};
use crate::shared::logprobs;
use crate::sse::{Data, Frame};
use crate::unusable_answer::UnusableAnswer;

/// Reads one stream. The events that it returns obey their grammar for any input.
#[derive(Debug)]
pub struct Reader {
    model: Box<str>,
    started: bool,
    ended: bool,
    items: Items,
}

/// The members that are read from events, for all types of events.
#[derive(Default)]
struct EventFields<'a> {
    kind: Option<Cow<'a, str>>,
    item_id: Option<Cow<'a, str>>,
    output_index: Option<u64>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    /// A delta, or the whole text.
    text: Option<Cow<'a, str>>,
    item: Option<Item<'a>>,
    part: Option<Part<'a>>,
    annotation: Option<Citation>,
    logprobs: Vec<Token>,
    response: Option<Raw<'a>>,
    has_error: bool,
}

impl Reader {
    /// A reader for an answer of the model with this public id.
    pub fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            started: false,
            ended: false,
            items: Items::new(model),
        }
    }

    /// Takes the next frame.
    pub fn frame(&mut self, frame: &Frame, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        if self.ended {
            return Ok(());
        }
        match frame.data() {
            Data::Absent => Ok(()),
            Data::Line(span) => {
                let data = frame.bytes.get(span).unwrap_or_default();
                self.data(data, frame, out)
            }
            Data::Lines(masked) => self.data(&masked, frame, out),
        }
    }

    /// Handles the end of the upstream's stream. Returns an error unless the last event has arrived.
    pub fn end(&mut self, _out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        if self.ended {
            Ok(())
        } else {
            Err(UnusableAnswer::Unfinished)
        }
    }

    /// Reads a whole response as if it were a stream.
    pub(in crate::responses) fn whole(
        model: &str,
        response: Raw<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        Self::new(model).finish(response, out)
    }

    /// Reads the content of the final response that the events before it did not contain.
    fn finish(&mut self, response: Raw<'_>, out: &mut Vec<Event>) -> Result<(), UnusableAnswer> {
        let answer = Answer::read(&mut Cursor::new(response.text()))?;
        let failed = matches!(answer.status.as_deref(), Some("failed" | "cancelled"));
        if failed || answer.error.is_some() {
            let error = answer.error.map_or(response.text(), |error| error.text());
            return Err(self.failure(error));
        }
        self.start(out);
        self.items
            .finish(answer.output.as_deref().unwrap_or_default(), out)?;
        out.extend(answer.usage.map(Event::Usage));
        let stop = answer.stop(self.items.has_calls(), self.items.is_refused());
        out.push(Event::Finish(stop));
        self.ended = true;
        Ok(())
    }

    fn start(&mut self, out: &mut Vec<Event>) {
        if !std::mem::replace(&mut self.started, true) {
            out.push(Event::Start);
        }
    }

    fn failure(&self, error: &str) -> UnusableAnswer {
        UnusableAnswer::Failure(rejection::read_event(error.as_bytes(), &self.model))
    }

    fn data(
        &mut self,
        data: &[u8],
        frame: &Frame,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        let text = utf8(data)?;
        // Some servers end every stream with `[DONE]`.
        if text.trim() == "[DONE]" {
            return Ok(());
        }
        let mut cursor = Cursor::new(text);
        let mut fields = EventFields::read(&mut cursor)?;
        cursor.end()?;
        let named = || frame.event().map(String::from_utf8_lossy);
        let Some(kind) = fields.kind.take().or_else(named) else {
            return Err(if fields.has_error {
                self.failure(text)
            } else {
                UnusableAnswer::malformed("an event has no type")
            });
        };
        if fields.has_error || kind == "error" {
            return Err(self.failure(text));
        }
        self.start(out);
        self.event(&kind, fields, out)?;
        if self.items.count() > ITEMS_MAX {
            return Err(UnusableAnswer::malformed("the answer has too many items"));
        }
        Ok(())
    }

    fn event(
        &mut self,
        kind: &str,
        fields: EventFields<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), UnusableAnswer> {
        let items = &mut self.items;
        let index = fields.output_index;
        let address = Address {
            id: fields.item_id.as_deref().filter(|id| !id.is_empty()),
            index,
        };
        let text = fields.text.unwrap_or_default();
        match kind {
            "response.output_item.added" => {
                if let Some(item) = fields.item {
                    items.added(index, &item, out);
                }
            }
            "response.content_part.added" => {
                let is_reasoning = fields.part.is_some_and(|part| part.is_reasoning);
                if !is_reasoning {
                    items.part_added(address, fields.content_index);
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                let part = (fields.content_index, kind == "response.refusal.delta");
                items.text(address, part, &text, fields.logprobs, out);
            }
            "response.output_text.annotation.added" => {
                if let Some(citation) = fields.annotation {
                    items.cite(address, fields.content_index, citation, out);
                }
            }
            "response.content_part.done" => {
                if let Some(part) = fields.part {
                    items.part_done(address, fields.content_index, &part, out);
                }
            }
            "response.reasoning_summary_part.added" => items.summary_added(address),
            "response.reasoning_summary_text.delta" => {
                items.summary(address, fields.summary_index, &text, out);
            }
            "response.reasoning_text.delta" => items.thought(address, &text, out),
            "response.function_call_arguments.delta" => items.arguments(address, &text, out),
            "response.output_item.done" => {
                if let Some(item) = fields.item {
                    items.done(index, &item, out)?;
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let Some(response) = fields.response else {
                    return Err(UnusableAnswer::malformed("the last event has no response"));
                };
                return self.finish(response, out);
            }
            _ => {}
        }
        Ok(())
    }
}

impl<'a> EventFields<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, UnusableAnswer> {
        let mut fields = Self::default();
        typed::object(cursor, "event", |cursor, name| {
            match name {
                "type" => fields.kind = typed::string(cursor, name)?,
                "item_id" => {
                    let id = cursor.value()?.string();
                    fields.item_id = id.map(|id| id.decode_lossy());
                }
                "output_index" => fields.output_index = index(cursor, name)?,
                "content_index" => fields.content_index = index(cursor, name)?,
                "summary_index" => fields.summary_index = index(cursor, name)?,
                "delta" => fields.text = typed::string(cursor, name)?,
                "item" => fields.item = Some(Item::read(cursor)?),
                "part" => fields.part = Some(Part::read(cursor)?),
                "logprobs" => fields.logprobs = logprobs::read(cursor)?,
                "annotation" => fields.annotation = Citation::read(cursor)?,
                "response" => fields.response = Some(cursor.value()?),
                "error" => fields.has_error = !cursor.value()?.is_null(),
                _ => skip(cursor)?,
            }
            Ok::<(), UnusableAnswer>(())
        })?;
        Ok(fields)
    }
}

fn index(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<u64>, UnusableAnswer> {
    Ok(typed::integer(cursor, name)?.map(Integer::saturating))
}

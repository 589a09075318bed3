//! Writes the streamed answer. Events are created one by one as they are sent.

use super::answer::{Answer, Response};
use super::event::{ContentPosition, Data, named};
use super::item::{Annotation, Item, Part, WireItem};
use super::writer::Writer;
use crate::call_context::CallContext;
use crate::fault::Script;
use crate::model::Pieces;
use crate::openai::{self, Refusal};
use crate::reply::{Event, EventKind, Reply};
use http::StatusCode;
use std::collections::VecDeque;

pub(super) fn stream(answer: Answer, obfuscation: bool, context: &CallContext<'_>) -> Reply {
    Reply::events(Events {
        writer: Writer::new(obfuscation.then(|| context.seed.clone())),
        answer,
        model: context.name.to_owned(),
        script: context.script.clone(),
        content_sent: 0,
        due: VecDeque::new(),
        stage: Stage::Start,
    })
}

/// The error event of a stream that has no other events.
pub(super) fn error_event(model: &str) -> Event {
    let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, model);
    Writer::new(None).error(&refusal)
}

/// Creates events whose data are empty objects.
pub(super) fn empty_objects() -> impl Iterator<Item = Event> {
    [
        "response.created",
        "response.output_text.delta",
        "response.completed",
    ]
    .map(|name| named(EventKind::Content, name, b"{}"))
    .into_iter()
}

struct Events {
    writer: Writer,
    answer: Answer,
    model: String,
    script: Script,
    /// The number of content events so far.
    content_sent: u64,
    /// Events that have been written and are sent before the stage goes on.
    due: VecDeque<Event>,
    stage: Stage,
}

/// The next kind of event in the stream.
enum Stage {
    Start,
    Open(usize),
    /// A part of a summary. The numbers are the indices of the item and of the part.
    Summary(usize, usize),
    SpeakSummary(usize, usize, Pieces),
    /// The visible reasoning of an item.
    Visible(usize),
    /// The text of a message, the arguments of a call, or visible reasoning.
    Speak(usize, Pieces),
    Close(usize),
    Finish,
    End,
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            if !matches!(self.stage, Stage::End)
                && let Some(event) = self.fault_event()
            {
                return Some(event);
            }
            if let Some(event) = self.due.pop_front() {
                return Some(event);
            }
            match std::mem::replace(&mut self.stage, Stage::End) {
                Stage::Start => self.start(),
                Stage::Open(index) => self.open(index),
                Stage::Summary(index, part) => self.open_summary(index, part),
                Stage::SpeakSummary(index, part, mut pieces) => {
                    if let Some(event) = self.speak_summary(index, part, &mut pieces) {
                        self.stage = Stage::SpeakSummary(index, part, pieces);
                        return Some(event);
                    }
                    self.stage = Stage::Summary(index, part + 1);
                }
                Stage::Visible(index) => self.open_visible(index),
                Stage::Speak(index, mut pieces) => {
                    if let Some(event) = self.send_piece_of(index, &mut pieces) {
                        self.stage = Stage::Speak(index, pieces);
                        return Some(event);
                    }
                    self.stage = Stage::Close(index);
                }
                Stage::Close(index) => self.close(index),
                Stage::Finish => self.finish(),
                Stage::End => return None,
            }
        }
    }
}

impl Events {
    fn start(&mut self) {
        for name in ["response.created", "response.in_progress"] {
            let response = Response::begun(&self.answer);
            let event = self
                .writer
                .write(EventKind::Frame, name, &Data::Response { response });
            self.due.push_back(event);
        }
        self.stage = Stage::Open(0);
    }

    fn open(&mut self, output_index: usize) {
        let Some(item) = self.answer.items.get(output_index) else {
            self.stage = Stage::Finish;
            return;
        };
        let early = self.script.events.early_content;
        let is_call = matches!(item, Item::Call { .. });
        let added = Data::Item {
            output_index,
            item: if early && is_call {
                WireItem::whole(item, "in_progress")
            } else {
                WireItem::begun(item)
            },
        };
        self.due
            .push_back(self.writer.frame("response.output_item.added", &added));
        self.stage = match item {
            Item::Reasoning { .. } => Stage::Summary(output_index, 0),
            Item::Message {
                id, text, refused, ..
            } => {
                let added = Data::Part {
                    spot: ContentPosition::content(id, output_index),
                    part: Part::begun(*refused),
                };
                self.due
                    .push_back(self.writer.frame("response.content_part.added", &added));
                Stage::Speak(output_index, text.pieces())
            }
            Item::Call { .. } if early => Stage::Close(output_index),
            Item::Hosted { .. } => Stage::Close(output_index),
            Item::Call { arguments, .. } => Stage::Speak(output_index, arguments.pieces()),
        };
    }

    /// Closes the previous part of a summary, and opens this part if it exists.
    fn open_summary(&mut self, index: usize, part: usize) {
        let Some(Item::Reasoning { id, summary, .. }) = self.answer.items.get(index) else {
            return;
        };
        let before = part.checked_sub(1);
        if let Some((at, text)) = before.and_then(|at| Some((at, summary.get(at)?))) {
            let spot = ContentPosition::summary(id, index, at);
            let text = text.as_str();
            let done = Data::Text {
                spot,
                text,
                logprobs: None,
            };
            let part = Part::SummaryText { text };
            self.due.extend([
                self.writer
                    .frame("response.reasoning_summary_text.done", &done),
                self.writer.frame(
                    "response.reasoning_summary_part.done",
                    &Data::Part { spot, part },
                ),
            ]);
        }
        let Some(text) = summary.get(part) else {
            self.stage = Stage::Visible(index);
            return;
        };
        let added = Data::Part {
            spot: ContentPosition::summary(id, index, part),
            part: Part::SummaryText { text: "" },
        };
        self.due.push_back(
            self.writer
                .frame("response.reasoning_summary_part.added", &added),
        );
        self.stage = Stage::SpeakSummary(index, part, text.pieces());
    }

    fn open_visible(&mut self, index: usize) {
        self.stage = Stage::Close(index);
        if let Some(Item::Reasoning {
            id,
            visible: Some(text),
            ..
        }) = self.answer.items.get(index)
        {
            let added = Data::Part {
                spot: ContentPosition::content(id, index),
                part: Part::ReasoningText { text: "" },
            };
            self.due
                .push_back(self.writer.frame("response.content_part.added", &added));
            self.stage = Stage::Speak(index, text.pieces());
        }
    }

    fn speak_summary(&mut self, index: usize, part: usize, pieces: &mut Pieces) -> Option<Event> {
        let piece = pieces.next()?;
        let spot = ContentPosition::summary(self.answer.items.get(index)?.id(), index, part);
        self.content_sent += 1;
        let name = "response.reasoning_summary_text.delta";
        Some(self.writer.delta(name, spot, piece, None))
    }

    fn send_piece_of(&mut self, index: usize, pieces: &mut Pieces) -> Option<Event> {
        let piece = pieces.next()?;
        self.content_sent += 1;
        Some(match self.answer.items.get(index)? {
            Item::Message {
                id,
                refused: false,
                logprobs,
                ..
            } => {
                // Text deltas always have the list of log probabilities, even if it is empty.
                let places = logprobs.map_or_else(Vec::new, |count| openai::logprobs(piece, count));
                let spot = ContentPosition::content(id, index);
                let name = "response.output_text.delta";
                self.writer.delta(name, spot, piece, Some(places))
            }
            Item::Message { id, .. } => {
                let spot = ContentPosition::content(id, index);
                self.writer
                    .delta("response.refusal.delta", spot, piece, None)
            }
            Item::Call { id, custom, .. } => {
                let name = if *custom {
                    "response.custom_tool_call_input.delta"
                } else {
                    "response.function_call_arguments.delta"
                };
                self.writer
                    .delta(name, ContentPosition::item(id, index), piece, None)
            }
            Item::Reasoning { id, .. } | Item::Hosted { id, .. } => {
                let spot = ContentPosition::content(id, index);
                let name = "response.reasoning_text.delta";
                self.writer.delta(name, spot, piece, None)
            }
        })
    }

    fn close(&mut self, output_index: usize) {
        let Some(item) = self.answer.items.get(output_index) else {
            return;
        };
        match item {
            Item::Message {
                id,
                text,
                refused,
                logprobs,
                citation,
                ..
            } => {
                let spot = ContentPosition::content(id, output_index);
                if let Some(citation) = citation {
                    let added = Data::Annotation {
                        spot,
                        annotation_index: 0,
                        annotation: Annotation::of(citation, text.as_str()),
                    };
                    let name = "response.output_text.annotation.added";
                    self.due.push_back(self.writer.frame(name, &added));
                }
                self.due
                    .push_back(self.writer.text_done(spot, text, *refused, *logprobs));
                if let Some(part) = Part::whole(item) {
                    let done = Data::Part { spot, part };
                    self.due
                        .push_back(self.writer.frame("response.content_part.done", &done));
                }
            }
            Item::Call {
                id,
                arguments,
                custom,
                ..
            } => {
                let spot = ContentPosition::item(id, output_index);
                let given = arguments.as_str();
                self.due.push_back(if *custom {
                    let done = Data::Input { spot, input: given };
                    self.writer
                        .frame("response.custom_tool_call_input.done", &done)
                } else {
                    let done = Data::Arguments {
                        spot,
                        arguments: given,
                    };
                    self.writer
                        .frame("response.function_call_arguments.done", &done)
                });
            }
            Item::Reasoning {
                id,
                visible: Some(text),
                ..
            } => {
                let spot = ContentPosition::content(id, output_index);
                let text = text.as_str();
                let done = Data::Text {
                    spot,
                    text,
                    logprobs: None,
                };
                let part = Part::ReasoningText { text };
                self.due.extend([
                    self.writer.frame("response.reasoning_text.done", &done),
                    self.writer
                        .frame("response.content_part.done", &Data::Part { spot, part }),
                ]);
            }
            Item::Reasoning { .. } | Item::Hosted { .. } => {}
        }
        let done = Data::Item {
            output_index,
            item: WireItem::whole(item, self.answer.status_of(output_index)),
        };
        self.due
            .push_back(self.writer.frame("response.output_item.done", &done));
        self.stage = Stage::Open(output_index + 1);
    }

    fn finish(&mut self) {
        if self.script.events.no_finish || self.script.events.no_done {
            return;
        }
        let usage = self.answer.counts.reported(self.script.usage);
        let response = Response::ended(&self.answer, usage);
        let data = Data::Response { response };
        let name = self.answer.end.event_name();
        self.due
            .push_back(self.writer.write(EventKind::Usage, name, &data));
    }

    /// The event that a script inserts at this point.
    fn fault_event(&mut self) -> Option<Event> {
        let events = &mut self.script.events;
        let is_due = |after: Option<u64>| after.is_some_and(|after| self.content_sent >= after);
        if is_due(events.error_after) {
            self.stage = Stage::End;
            self.due.clear();
            let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, &self.model);
            return Some(self.writer.error(&refusal));
        }
        if is_due(events.failure_after) {
            self.stage = Stage::End;
            self.due.clear();
            let response = Response::ended(&self.answer, None);
            let name = self.answer.end.event_name();
            return Some(self.writer.frame(name, &Data::Response { response }));
        }
        if is_due(events.garbage_after) {
            events.garbage_after = None;
            return Some(named(
                EventKind::Frame,
                "response.output_text.delta",
                br#"{"type":"response.output_text.delta","sequ"#,
            ));
        }
        None
    }
}

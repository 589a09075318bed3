//! The streamed answer: events, made one at a time while they are sent.

use super::answer::{Answer, Error, Response};
use super::event::{Data, Spot, named};
use super::item::{Item, Part, Shown};
use crate::ask::Ask;
use crate::fault::Script;
use crate::mind::{Pieces, Said};
use crate::openai::{self, Place, Refusal};
use crate::reply::{Event, EventKind, Reply};
use crate::seed::Seed;
use http::StatusCode;
use std::collections::VecDeque;

const OBFUSCATION_MAX: usize = 16;
const SERVER_ERROR: &str = "server_error";

pub(super) fn stream(answer: Answer, obfuscation: bool, ask: &Ask<'_>) -> Reply {
    Reply::events(Events {
        writer: Writer {
            number: 0,
            obfuscation: obfuscation.then(|| ask.seed.clone()),
        },
        answer,
        model: ask.name.to_owned(),
        script: ask.script.clone(),
        spoken: 0,
        due: VecDeque::new(),
        at: At::Start,
    })
}

/// The event by which a stream fails that has not begun.
pub(super) fn error_event(model: &str) -> Event {
    let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, model);
    Writer::default().error(&refusal)
}

/// Events without members.
pub(super) fn empty_objects() -> impl Iterator<Item = Event> {
    [
        "response.created",
        "response.output_text.delta",
        "response.completed",
    ]
    .map(|name| named(EventKind::Content, name, b"{}"))
    .into_iter()
}

/// The events of one answer.
struct Events {
    writer: Writer,
    answer: Answer,
    model: String,
    script: Script,
    /// Content events so far.
    spoken: u64,
    /// Events that come before anything else.
    due: VecDeque<Event>,
    at: At,
}

/// What comes next.
enum At {
    Start,
    Open(usize),
    /// A part of a summary.
    Summary(usize, usize),
    SpeakSummary(usize, usize, Pieces),
    /// The text of a message, the arguments of a call.
    Speak(usize, Pieces),
    Close(usize),
    Finish,
    End,
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            if !matches!(self.at, At::End)
                && let Some(event) = self.fault_event()
            {
                return Some(event);
            }
            if let Some(event) = self.due.pop_front() {
                return Some(event);
            }
            match std::mem::replace(&mut self.at, At::End) {
                At::Start => self.start(),
                At::Open(index) => self.open(index),
                At::Summary(index, part) => self.open_summary(index, part),
                At::SpeakSummary(index, part, mut pieces) => {
                    if let Some(event) = self.speak_summary(index, part, &mut pieces) {
                        self.at = At::SpeakSummary(index, part, pieces);
                        return Some(event);
                    }
                    self.at = At::Summary(index, part + 1);
                }
                At::Speak(index, mut pieces) => {
                    if let Some(event) = self.speak(index, &mut pieces) {
                        self.at = At::Speak(index, pieces);
                        return Some(event);
                    }
                    self.at = At::Close(index);
                }
                At::Close(index) => self.close(index),
                At::Finish => self.finish(),
                At::End => return None,
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
        self.at = At::Open(0);
    }

    fn open(&mut self, output_index: usize) {
        let Some(item) = self.answer.items.get(output_index) else {
            self.at = At::Finish;
            return;
        };
        let added = Data::Item {
            output_index,
            item: Shown::begun(item),
        };
        self.due
            .push_back(self.writer.frame("response.output_item.added", &added));
        self.at = match item {
            Item::Reasoning { .. } => At::Summary(output_index, 0),
            Item::Message {
                id, said, refused, ..
            } => {
                let added = Data::Part {
                    spot: Spot::content(id, output_index),
                    part: Part::of_message(*refused, "", None),
                };
                self.due
                    .push_back(self.writer.frame("response.content_part.added", &added));
                At::Speak(output_index, said.pieces())
            }
            Item::Call { arguments, .. } => At::Speak(output_index, arguments.pieces()),
        };
    }

    /// Closes the part of a summary before this one, and opens this one where there is one.
    fn open_summary(&mut self, index: usize, part: usize) {
        let Some(Item::Reasoning { id, summary, .. }) = self.answer.items.get(index) else {
            return;
        };
        let before = part.checked_sub(1);
        if let Some((at, said)) = before.and_then(|at| Some((at, summary.get(at)?))) {
            let spot = Spot::summary(id, index, at);
            let text = said.as_str();
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
        let Some(said) = summary.get(part) else {
            self.at = At::Close(index);
            return;
        };
        let added = Data::Part {
            spot: Spot::summary(id, index, part),
            part: Part::SummaryText { text: "" },
        };
        self.due.push_back(
            self.writer
                .frame("response.reasoning_summary_part.added", &added),
        );
        self.at = At::SpeakSummary(index, part, said.pieces());
    }

    fn speak_summary(&mut self, index: usize, part: usize, pieces: &mut Pieces) -> Option<Event> {
        let piece = pieces.next()?;
        let spot = Spot::summary(self.answer.items.get(index)?.id(), index, part);
        self.spoken += 1;
        let name = "response.reasoning_summary_text.delta";
        Some(self.writer.delta(name, spot, piece, None))
    }

    fn speak(&mut self, index: usize, pieces: &mut Pieces) -> Option<Event> {
        let piece = pieces.next()?;
        self.spoken += 1;
        Some(match self.answer.items.get(index)? {
            Item::Message {
                id,
                refused: false,
                logprobs,
                ..
            } => {
                // Text always has the list, if only an empty one.
                let places = logprobs.map_or_else(Vec::new, |count| openai::logprobs(piece, count));
                let spot = Spot::content(id, index);
                let name = "response.output_text.delta";
                self.writer.delta(name, spot, piece, Some(places))
            }
            Item::Message { id, .. } => {
                let spot = Spot::content(id, index);
                self.writer
                    .delta("response.refusal.delta", spot, piece, None)
            }
            Item::Call { id, custom, .. } => {
                let name = if *custom {
                    "response.custom_tool_call_input.delta"
                } else {
                    "response.function_call_arguments.delta"
                };
                self.writer.delta(name, Spot::item(id, index), piece, None)
            }
            Item::Reasoning { .. } => return None,
        })
    }

    fn close(&mut self, output_index: usize) {
        let Some(item) = self.answer.items.get(output_index) else {
            return;
        };
        match item {
            Item::Message {
                id,
                said,
                refused,
                logprobs,
                ..
            } => {
                let spot = Spot::content(id, output_index);
                self.due
                    .push_back(self.writer.said(spot, said, *refused, *logprobs));
                let part = Part::of_message(*refused, said.as_str(), *logprobs);
                let done = Data::Part { spot, part };
                self.due
                    .push_back(self.writer.frame("response.content_part.done", &done));
            }
            Item::Call {
                id,
                arguments,
                custom,
                ..
            } => {
                let spot = Spot::item(id, output_index);
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
            Item::Reasoning { .. } => {}
        }
        let done = Data::Item {
            output_index,
            item: Shown::whole(item, self.answer.status_of(output_index)),
        };
        self.due
            .push_back(self.writer.frame("response.output_item.done", &done));
        self.at = At::Open(output_index + 1);
    }

    fn finish(&mut self) {
        if self.script.events.no_finish || self.script.events.no_done {
            return;
        }
        let name = if self.answer.incomplete.is_some() {
            "response.incomplete"
        } else {
            "response.completed"
        };
        let usage = self.answer.figures.told(self.script.usage);
        let response = Response::ended(&self.answer, usage);
        let event = self
            .writer
            .write(EventKind::Usage, name, &Data::Response { response });
        self.due.push_back(event);
    }

    /// The event that a script puts in here.
    fn fault_event(&mut self) -> Option<Event> {
        let events = &mut self.script.events;
        let is_due = |after: Option<u64>| after.is_some_and(|after| self.spoken >= after);
        if is_due(events.error_after) {
            self.at = At::End;
            self.due.clear();
            let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, &self.model);
            return Some(self.writer.error(&refusal));
        }
        if is_due(events.failure_after) {
            self.at = At::End;
            self.due.clear();
            let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, &self.model);
            let error = Error {
                code: SERVER_ERROR,
                message: &refusal.message,
            };
            let response = Response::failed(&self.answer, error);
            return Some(
                self.writer
                    .frame("response.failed", &Data::Response { response }),
            );
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

/// Numbers events, and hides their lengths.
#[derive(Default)]
struct Writer {
    number: u64,
    obfuscation: Option<Seed>,
}

impl Writer {
    fn write(&mut self, kind: EventKind, name: &str, data: &Data<'_>) -> Event {
        let number = self.number;
        self.number += 1;
        data.write(kind, name, number)
    }

    fn frame(&mut self, name: &str, data: &Data<'_>) -> Event {
        self.write(EventKind::Frame, name, data)
    }

    fn delta(
        &mut self,
        name: &str,
        spot: Spot<'_>,
        delta: &str,
        logprobs: Option<Vec<Place>>,
    ) -> Event {
        let obfuscation = self.obfuscation.as_mut().map(|seed| {
            let len = 1 + seed.below(OBFUSCATION_MAX);
            seed.letters(len)
        });
        let data = Data::Delta {
            spot,
            delta,
            logprobs,
            obfuscation,
        };
        self.write(EventKind::Content, name, &data)
    }

    /// The end of a message's text.
    fn said(
        &mut self,
        spot: Spot<'_>,
        said: &Said,
        refused: bool,
        alternatives: Option<usize>,
    ) -> Event {
        let text = said.as_str();
        if refused {
            let done = Data::Refusal {
                spot,
                refusal: text,
            };
            return self.frame("response.refusal.done", &done);
        }
        let places = alternatives.map_or_else(Vec::new, |count| openai::logprobs(text, count));
        let done = Data::Text {
            spot,
            text,
            logprobs: Some(places),
        };
        self.frame("response.output_text.done", &done)
    }

    fn error(&mut self, refusal: &Refusal) -> Event {
        let error = Data::Error {
            code: Some(refusal.code.unwrap_or(SERVER_ERROR)),
            message: &refusal.message,
            param: refusal.param.as_deref(),
        };
        self.frame("error", &error)
    }
}

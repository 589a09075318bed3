//! The streamed answer: events, made one at a time while they are sent.

use super::answer::{Answer, Spoken};
use super::event::{Data, Delta, named};
use super::message::{Block, Message};
use super::refusal::{Refusal, error_json};
use crate::ask::Ask;
use crate::fault::Script;
use crate::mind::Pieces;
use crate::reply::{Event, EventKind, Reply};
use http::StatusCode;

pub(super) fn stream(answer: Answer, ask: &Ask<'_>, request_id: &str) -> Reply {
    Reply::events(Events {
        answer,
        model: ask.name.to_owned(),
        request_id: request_id.to_owned(),
        script: ask.script.clone(),
        spoken: 0,
        at: At::Start,
    })
}

pub(super) fn error_event(refusal: &Refusal, request_id: &str) -> Event {
    named(EventKind::Frame, "error", &error_json(refusal, request_id))
}

/// Events without members, and an end.
pub(super) fn empty_objects() -> impl Iterator<Item = Event> {
    let empty = ["message_start", "content_block_delta", "message_delta"]
        .map(|name| named(EventKind::Content, name, b"{}"));
    empty
        .into_iter()
        .chain([Data::MessageStop.write(EventKind::Frame)])
}

/// The events of one answer.
struct Events {
    answer: Answer,
    model: String,
    request_id: String,
    script: Script,
    spoken: u64,
    at: At,
}

/// What comes next.
enum At {
    Start,
    /// The vendor's safety system stops the answer when it has begun.
    Blocked,
    Open(usize),
    /// The vendor pings once, after the first block was opened.
    Ping,
    /// The vendor's first fragment of a call's input is empty.
    EmptyInput(usize),
    Speak(usize, Pieces),
    /// What comes after the last piece of a block: the signature of a thought, the source of a text.
    Seal(usize),
    Close(usize),
    Finish,
    Stop,
    End,
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        if !matches!(self.at, At::Stop | At::End)
            && let Some(event) = self.fault_event()
        {
            return Some(event);
        }
        loop {
            match std::mem::replace(&mut self.at, At::End) {
                At::Start => {
                    self.at = if self.script.text.blocked.is_some() {
                        At::Blocked
                    } else {
                        At::Open(0)
                    };
                    let usage = self.answer.figures.at_start(self.script.usage);
                    let message = Message::begun(&self.answer, usage);
                    return Some(Data::MessageStart { message }.write(EventKind::Frame));
                }
                At::Blocked => return Some(error_event(&Refusal::blocked(), &self.request_id)),
                At::Open(index) => {
                    let Some(spoken) = self.answer.blocks.get(index) else {
                        self.at = At::Finish;
                        continue;
                    };
                    if self.script.events.early_content {
                        self.at = At::Close(index);
                        self.spoken += 1;
                        let content_block = Block::whole(spoken);
                        let start = Data::ContentBlockStart {
                            index,
                            content_block,
                        };
                        return Some(start.write(EventKind::Content));
                    }
                    self.at = if index == 0 {
                        At::Ping
                    } else {
                        after_open(index, spoken)
                    };
                    let start = Data::ContentBlockStart {
                        index,
                        content_block: Block::begun(spoken),
                    };
                    return Some(start.write(EventKind::Frame));
                }
                At::Ping => {
                    let first = self.answer.blocks.first();
                    self.at = first.map_or(At::Finish, |spoken| after_open(0, spoken));
                    return Some(Data::Ping.write(EventKind::Frame));
                }
                At::EmptyInput(index) => {
                    self.at = match self.answer.blocks.get(index) {
                        Some(Spoken::Call { input, .. }) if input.as_str() != "{}" => {
                            At::Speak(index, input.pieces())
                        }
                        _ => At::Close(index),
                    };
                    let delta = Delta::InputJsonDelta { partial_json: "" };
                    return Some(Data::ContentBlockDelta { index, delta }.write(EventKind::Frame));
                }
                At::Speak(index, mut pieces) => {
                    let Some(event) = self.speak(index, &mut pieces) else {
                        self.at = At::Seal(index);
                        continue;
                    };
                    self.at = At::Speak(index, pieces);
                    return Some(event);
                }
                At::Seal(index) => {
                    self.at = At::Close(index);
                    let delta = match self.answer.blocks.get(index) {
                        Some(Spoken::Thinking { signature, .. }) => {
                            Delta::SignatureDelta { signature }
                        }
                        Some(Spoken::Text {
                            source: Some(citation),
                            ..
                        }) => Delta::CitationsDelta { citation },
                        _ => continue,
                    };
                    return Some(Data::ContentBlockDelta { index, delta }.write(EventKind::Frame));
                }
                At::Close(index) => {
                    self.at = At::Open(index + 1);
                    return Some(Data::ContentBlockStop { index }.write(EventKind::Frame));
                }
                At::Finish if self.script.events.no_finish => return None,
                At::Finish => {
                    self.at = At::Stop;
                    let finish = Data::MessageDelta {
                        delta: &self.answer.end,
                        usage: self.answer.figures.told(self.script.usage),
                    };
                    return Some(finish.write(EventKind::Usage));
                }
                At::Stop if self.script.events.no_done => return None,
                At::Stop => return Some(Data::MessageStop.write(EventKind::Frame)),
                At::End => return None,
            }
        }
    }
}

fn after_open(index: usize, spoken: &Spoken) -> At {
    match spoken {
        Spoken::Thinking { thought, .. } => At::Speak(index, thought.pieces()),
        Spoken::Redacted { .. } => At::Close(index),
        Spoken::Text { said, .. } => At::Speak(index, said.pieces()),
        Spoken::Call { .. } => At::EmptyInput(index),
    }
}

impl Events {
    fn speak(&mut self, index: usize, pieces: &mut Pieces) -> Option<Event> {
        let piece = pieces.next()?;
        let delta = match self.answer.blocks.get(index)? {
            Spoken::Thinking { .. } => Delta::ThinkingDelta { thinking: piece },
            Spoken::Text { .. } | Spoken::Redacted { .. } => Delta::TextDelta { text: piece },
            Spoken::Call { .. } => Delta::InputJsonDelta {
                partial_json: piece,
            },
        };
        self.spoken += 1;
        Some(Data::ContentBlockDelta { index, delta }.write(EventKind::Content))
    }

    /// The event that a script puts in here.
    fn fault_event(&mut self) -> Option<Event> {
        let events = &mut self.script.events;
        let fails_after = events.error_after.or(events.failure_after);
        if fails_after.is_some_and(|after| self.spoken >= after) {
            self.at = At::End;
            let overloaded = StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            let refusal = Refusal::of_status(overloaded, &self.model);
            return Some(error_event(&refusal, &self.request_id));
        }
        if events
            .garbage_after
            .is_some_and(|after| self.spoken >= after)
        {
            events.garbage_after = None;
            return Some(named(
                EventKind::Frame,
                "content_block_delta",
                br#"{"type":"content_block_delta","ind"#,
            ));
        }
        None
    }
}

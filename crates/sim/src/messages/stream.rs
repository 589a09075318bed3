//! Writes the streamed answer. Events are created one by one as they are sent.

use super::answer::{Answer, AnswerBlock};
use super::event::{Data, Delta, named};
use super::message::{Block, Message};
use super::refusal::{Refusal, error_json};
use crate::call_context::CallContext;
use crate::fault::Script;
use crate::model::Pieces;
use crate::reply::{Event, EventKind, Reply};
use http::StatusCode;

pub(super) fn stream(answer: Answer, context: &CallContext<'_>, request_id: &str) -> Reply {
    Reply::events(Events {
        answer,
        model: context.name.to_owned(),
        request_id: request_id.to_owned(),
        script: context.script.clone(),
        block: 0,
        stage: Stage::Start,
    })
}

pub(super) fn error_event(refusal: &Refusal, request_id: &str) -> Event {
    named(EventKind::Frame, "error", &error_json(refusal, request_id))
}

/// Creates events whose data are empty objects, and the final event.
pub(super) fn empty_objects() -> impl Iterator<Item = Event> {
    let empty = ["message_start", "content_block_delta", "message_delta"]
        .map(|name| named(EventKind::Content, name, b"{}"));
    empty
        .into_iter()
        .chain([Data::MessageStop.write(EventKind::Frame)])
}

struct Events {
    answer: Answer,
    model: String,
    request_id: String,
    script: Script,
    block: u64,
    stage: Stage,
}

/// The next kind of event in the stream.
enum Stage {
    Start,
    /// An error, because the vendor's safety system blocks the answer after it has begun.
    Blocked,
    Open(usize),
    /// The only ping, which the vendor sends after it has opened the first block.
    Ping,
    /// The first fragment of a call's input, which is empty, as with the vendor.
    EmptyInput(usize),
    Speak(usize, Pieces),
    /// The signature of a thought or the source of a text, which follows the last piece.
    Seal(usize),
    Close(usize),
    Finish,
    Stop,
    End,
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        if !matches!(self.stage, Stage::Stop | Stage::End)
            && let Some(event) = self.fault_event()
        {
            return Some(event);
        }
        loop {
            match std::mem::replace(&mut self.stage, Stage::End) {
                Stage::Start => {
                    self.stage = if self.script.text.blocked.is_some() {
                        Stage::Blocked
                    } else {
                        Stage::Open(0)
                    };
                    let usage = self.answer.counts.at_start(self.script.usage);
                    let message = Message::begun(&self.answer, usage);
                    return Some(Data::MessageStart { message }.write(EventKind::Frame));
                }
                Stage::Blocked => return Some(error_event(&Refusal::blocked(), &self.request_id)),
                Stage::Open(index) => {
                    let Some(block) = self.answer.blocks.get(index) else {
                        self.stage = Stage::Finish;
                        continue;
                    };
                    if self.script.events.early_content {
                        self.stage = Stage::Close(index);
                        self.block += 1;
                        let content_block = Block::whole(block);
                        let start = Data::ContentBlockStart {
                            index,
                            content_block,
                        };
                        return Some(start.write(EventKind::Content));
                    }
                    self.stage = if index == 0 {
                        Stage::Ping
                    } else {
                        after_open(index, block)
                    };
                    let start = Data::ContentBlockStart {
                        index,
                        content_block: Block::begun(block),
                    };
                    return Some(start.write(EventKind::Frame));
                }
                Stage::Ping => {
                    let first = self.answer.blocks.first();
                    self.stage = first.map_or(Stage::Finish, |block| after_open(0, block));
                    return Some(Data::Ping.write(EventKind::Frame));
                }
                Stage::EmptyInput(index) => {
                    self.stage = match self.answer.blocks.get(index) {
                        Some(AnswerBlock::Call { input, .. }) if input.as_str() != "{}" => {
                            Stage::Speak(index, input.pieces())
                        }
                        _ => Stage::Close(index),
                    };
                    let delta = Delta::InputJsonDelta { partial_json: "" };
                    return Some(Data::ContentBlockDelta { index, delta }.write(EventKind::Frame));
                }
                Stage::Speak(index, mut pieces) => {
                    let Some(event) = self.send_piece_of(index, &mut pieces) else {
                        self.stage = Stage::Seal(index);
                        continue;
                    };
                    self.stage = Stage::Speak(index, pieces);
                    return Some(event);
                }
                Stage::Seal(index) => {
                    self.stage = Stage::Close(index);
                    let delta = match self.answer.blocks.get(index) {
                        Some(AnswerBlock::Thinking { signature, .. }) => {
                            Delta::SignatureDelta { signature }
                        }
                        Some(AnswerBlock::Text {
                            source: Some(citation),
                            ..
                        }) => Delta::CitationsDelta { citation },
                        _ => continue,
                    };
                    return Some(Data::ContentBlockDelta { index, delta }.write(EventKind::Frame));
                }
                Stage::Close(index) => {
                    self.stage = Stage::Open(index + 1);
                    return Some(Data::ContentBlockStop { index }.write(EventKind::Frame));
                }
                Stage::Finish if self.script.events.no_finish => return None,
                Stage::Finish => {
                    self.stage = Stage::Stop;
                    let finish = Data::MessageDelta {
                        delta: &self.answer.end,
                        usage: self.answer.counts.reported(self.script.usage),
                    };
                    return Some(finish.write(EventKind::Usage));
                }
                Stage::Stop if self.script.events.no_done => return None,
                Stage::Stop => return Some(Data::MessageStop.write(EventKind::Frame)),
                Stage::End => return None,
            }
        }
    }
}

fn after_open(index: usize, block: &AnswerBlock) -> Stage {
    match block {
        AnswerBlock::Thinking { thought, .. } => Stage::Speak(index, thought.pieces()),
        AnswerBlock::Redacted { .. } => Stage::Close(index),
        AnswerBlock::Text { text, .. } => Stage::Speak(index, text.pieces()),
        AnswerBlock::Call { .. } => Stage::EmptyInput(index),
    }
}

impl Events {
    fn send_piece_of(&mut self, index: usize, pieces: &mut Pieces) -> Option<Event> {
        let piece = pieces.next()?;
        let delta = match self.answer.blocks.get(index)? {
            AnswerBlock::Thinking { .. } => Delta::ThinkingDelta { thinking: piece },
            AnswerBlock::Text { .. } | AnswerBlock::Redacted { .. } => {
                Delta::TextDelta { text: piece }
            }
            AnswerBlock::Call { .. } => Delta::InputJsonDelta {
                partial_json: piece,
            },
        };
        self.block += 1;
        Some(Data::ContentBlockDelta { index, delta }.write(EventKind::Content))
    }

    /// The event that a script inserts at this point.
    fn fault_event(&mut self) -> Option<Event> {
        let events = &mut self.script.events;
        let fails_after = events.error_after.or(events.failure_after);
        if fails_after.is_some_and(|after| self.block >= after) {
            self.stage = Stage::End;
            let overloaded = StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            let refusal = Refusal::of_status(overloaded, &self.model);
            return Some(error_event(&refusal, &self.request_id));
        }
        if events
            .garbage_after
            .is_some_and(|after| self.block >= after)
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

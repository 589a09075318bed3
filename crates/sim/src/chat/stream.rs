//! The streamed answer: chunks, made one at a time while they are sent.

use super::answer::{Identity, call_id, finish_word, outputs};
use super::delta::{Chunk, ChunkChoice, Delta, Member};
use super::logprobs;
use super::request::Request;
use super::usage::{Figures, Usage};
use crate::ask::Ask;
use crate::fault::{Script, UsageFault};
use crate::mind::{Output, Pieces};
use crate::openai::{Refusal, error_json};
use crate::reply::{Event, EventKind, Reply};
use crate::seed::Seed;
use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;

const DONE: &[u8] = b"data: [DONE]\n\n";
const OBFUSCATION_MAX: usize = 16;

pub(super) fn stream(request: &Request, ask: &Ask<'_>) -> Reply {
    let mut seed = ask.seed.clone();
    let identity = Identity::of(ask, &mut seed);
    let outputs = outputs(request, ask);
    let figures = Figures::of(&request.prompt, &outputs, ask.script);
    let choices = outputs
        .into_iter()
        .enumerate()
        .map(|(index, output)| Speaker::new(index, output, request, &mut seed))
        .collect();
    Reply::events(Chunks {
        identity,
        model: ask.name.to_owned(),
        script: ask.script.clone(),
        figures,
        include_usage: request.streaming.include_usage,
        obfuscation: request.streaming.obfuscation,
        seed,
        turn: choices,
        content_events: 0,
        stage: Stage::Speaking,
    })
}

/// An error body under status 200, in the form that was asked for.
pub(crate) fn error_in_200(request: &Value, model: &str) -> Reply {
    let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, model);
    if wants_stream(request) {
        Reply::events(std::iter::once(error_event(&refusal)))
    } else {
        Reply::json(StatusCode::OK, error_json(&refusal))
    }
}

/// An object without members, in the form that was asked for.
pub(crate) fn empty_object(request: &Value) -> Reply {
    if wants_stream(request) {
        let empty = frame(EventKind::Content, b"{}");
        Reply::events([empty, done()].into_iter())
    } else {
        Reply::json(StatusCode::OK, "{}")
    }
}

fn wants_stream(request: &Value) -> bool {
    request.get("stream") == Some(&Value::Bool(true))
}

fn error_event(refusal: &Refusal) -> Event {
    frame(EventKind::Frame, &error_json(refusal))
}

fn done() -> Event {
    Event {
        kind: EventKind::Frame,
        bytes: Bytes::from_static(DONE),
    }
}

fn frame(kind: EventKind, json: &[u8]) -> Event {
    Event {
        kind,
        bytes: [b"data: ", json, b"\n\n"].concat().into(),
    }
}

/// The events of one answer.
struct Chunks {
    identity: Identity,
    model: String,
    script: Script,
    figures: Figures,
    include_usage: bool,
    obfuscation: bool,
    seed: Seed,
    /// Whose turn it is; the choices speak one after another, a chunk each.
    turn: VecDeque<Speaker>,
    content_events: u64,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Speaking,
    Usage,
    Done,
    Ended,
}

impl Iterator for Chunks {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            match self.stage {
                Stage::Speaking => {
                    if let Some(event) = self.fault_event().or_else(|| self.speak()) {
                        return Some(event);
                    }
                    self.stage = if self.script.events.no_finish {
                        Stage::Ended
                    } else {
                        Stage::Usage
                    };
                }
                Stage::Usage => {
                    self.stage = Stage::Done;
                    if let Some(event) = self.usage_event() {
                        return Some(event);
                    }
                }
                Stage::Done => {
                    self.stage = Stage::Ended;
                    if !self.script.events.no_done {
                        return Some(done());
                    }
                }
                Stage::Ended => return None,
            }
        }
    }
}

impl Chunks {
    /// The event that a script puts in here.
    fn fault_event(&mut self) -> Option<Event> {
        let events = &mut self.script.events;
        if events
            .error_after
            .is_some_and(|after| self.content_events >= after)
        {
            self.stage = Stage::Ended;
            let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, &self.model);
            return Some(error_event(&refusal));
        }
        if events
            .garbage_after
            .is_some_and(|after| self.content_events >= after)
        {
            events.garbage_after = None;
            return Some(frame(
                EventKind::Frame,
                br#"{"id":"chatcmpl-Sim","choices":[{"ind"#,
            ));
        }
        None
    }

    fn speak(&mut self) -> Option<Event> {
        loop {
            let mut speaker = self.turn.pop_front()?;
            let Some(spoken) = speaker.next() else {
                continue;
            };
            let event = self.chunk(&speaker, spoken);
            self.turn.push_back(speaker);
            if let Some(event) = event {
                return Some(event);
            }
        }
    }

    fn chunk(&mut self, speaker: &Speaker, spoken: Spoken) -> Option<Event> {
        let finishing = spoken.finish.is_some();
        if finishing && self.script.events.no_finish {
            return None;
        }
        let usage = match self.script.usage {
            UsageFault::Running | UsageFault::Shrinking if spoken.content => {
                Some(self.figures.so_far(self.content_events + 1))
            }
            UsageFault::OnFinish if finishing && self.turn.is_empty() => {
                self.figures.told(UsageFault::OnFinish)
            }
            _ => None,
        };
        let kind = if spoken.content {
            self.content_events += 1;
            EventKind::Content
        } else {
            EventKind::Frame
        };
        let choice = ChunkChoice {
            index: speaker.index,
            delta: spoken.delta,
            logprobs: spoken.logprobs,
            finish_reason: spoken.finish,
        };
        Some(self.write(kind, &[choice], usage))
    }

    fn usage_event(&mut self) -> Option<Event> {
        let wanted = match self.script.usage {
            UsageFault::OnFinish => false,
            UsageFault::Unasked => true,
            _ => self.include_usage,
        };
        let usage = wanted
            .then(|| self.figures.told(self.script.usage))
            .flatten()?;
        Some(self.write(EventKind::Usage, &[], Some(usage)))
    }

    fn write(&mut self, kind: EventKind, choices: &[ChunkChoice], usage: Option<Usage>) -> Event {
        let obfuscation = self.obfuscation.then(|| {
            let len = 1 + self.seed.below(OBFUSCATION_MAX);
            self.seed.letters(len)
        });
        let chunk = Chunk {
            id: &self.identity.id,
            object: "chat.completion.chunk",
            created: self.identity.created,
            model: &self.identity.model,
            service_tier: "default",
            system_fingerprint: &self.identity.fingerprint,
            choices,
            // Who asked for usage gets a null until it is there.
            usage: match usage {
                Some(usage) => Member::Given(usage),
                None if self.include_usage => Member::Null,
                None => Member::Absent,
            },
            obfuscation,
        };
        written(kind, &chunk)
    }
}

fn written(kind: EventKind, chunk: &impl Serialize) -> Event {
    let mut bytes = b"data: ".to_vec();
    // Texts, numbers and checked raw values always serialize into memory.
    let _ = serde_json::to_writer(&mut bytes, chunk);
    bytes.extend_from_slice(b"\n\n");
    Event {
        kind,
        bytes: bytes.into(),
    }
}

/// One choice: gives its chunks in order.
struct Speaker {
    index: usize,
    output: Output,
    logprobs: Option<usize>,
    legacy: bool,
    at: At,
    call_ids: VecDeque<String>,
}

/// Where a choice stands.
enum At {
    Role,
    Reasoning(Pieces),
    Text(Pieces),
    CallStart(usize),
    CallArguments(usize, Pieces),
    Finish,
    End,
}

/// One chunk of a choice.
struct Spoken {
    delta: Delta,
    logprobs: Option<logprobs::Logprobs>,
    finish: Option<&'static str>,
    content: bool,
}

impl Speaker {
    fn new(index: usize, output: Output, request: &Request, seed: &mut Seed) -> Self {
        let call_ids = output.calls.iter().map(|_| call_id(seed)).collect();
        Self {
            index,
            output,
            logprobs: request.logprobs,
            legacy: request.legacy,
            at: At::Role,
            call_ids,
        }
    }

    fn next(&mut self) -> Option<Spoken> {
        loop {
            match &mut self.at {
                At::Role => {
                    self.at = At::Reasoning(self.output.reasoning.pieces());
                    return Some(Spoken::frame(Delta::role(self.says_nothing())));
                }
                At::Reasoning(pieces) => {
                    if let Some(piece) = pieces.next() {
                        return Some(Spoken::content(Delta::reasoning(piece)));
                    }
                    self.at = At::Text(self.output.text.pieces());
                }
                At::Text(pieces) => {
                    let refused = self.output.refused;
                    if let Some(piece) = pieces.next() {
                        let logprobs = self
                            .logprobs
                            .map(|alternatives| logprobs::of(piece, alternatives, refused));
                        let delta = if refused {
                            Delta::refusal(piece)
                        } else {
                            Delta::text(piece)
                        };
                        return Some(Spoken {
                            logprobs,
                            ..Spoken::content(delta)
                        });
                    }
                    self.at = At::CallStart(0);
                }
                At::CallStart(index) => {
                    let index = *index;
                    let Some(call) = self.output.calls.get(index) else {
                        self.at = At::Finish;
                        continue;
                    };
                    let id = self.call_ids.pop_front().unwrap_or_default();
                    let delta = if self.legacy {
                        Delta::function_start(call)
                    } else {
                        Delta::call_start(index, id, call)
                    };
                    self.at = At::CallArguments(index, call.arguments.pieces());
                    return Some(Spoken::content(delta));
                }
                At::CallArguments(index, pieces) => {
                    let index = *index;
                    let custom = self.output.calls.get(index).is_some_and(|call| call.custom);
                    if let Some(piece) = pieces.next() {
                        let delta = if self.legacy {
                            Delta::function_part(piece)
                        } else {
                            Delta::call_part(index, custom, piece)
                        };
                        return Some(Spoken::content(delta));
                    }
                    // A deprecated answer holds one call.
                    self.at = if self.legacy {
                        At::Finish
                    } else {
                        At::CallStart(index + 1)
                    };
                }
                At::Finish => {
                    self.at = At::End;
                    let finish = finish_word(self.output.finish, self.legacy);
                    return Some(Spoken {
                        finish: Some(finish),
                        ..Spoken::frame(Delta::default())
                    });
                }
                At::End => return None,
            }
        }
    }

    /// Neither text nor refusal will come, only calls.
    fn says_nothing(&self) -> bool {
        self.output.refused || (self.output.text.is_empty() && !self.output.calls.is_empty())
    }
}

impl Spoken {
    fn frame(delta: Delta) -> Self {
        Self {
            delta,
            logprobs: None,
            finish: None,
            content: false,
        }
    }

    fn content(delta: Delta) -> Self {
        Self {
            content: true,
            ..Self::frame(delta)
        }
    }
}

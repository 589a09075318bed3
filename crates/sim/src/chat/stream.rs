//! Writes the streamed answer. Chunks are created one by one as they are sent.

use super::answer::{Identity, outputs};
use super::choice_stream::{ChoiceChunk, ChoiceStream};
use super::delta::{Chunk, ChunkChoice, Delta, OptionalMember};
use super::request::Request;
use super::usage::{TokenCounts, Usage};
use crate::call_context::CallContext;
use crate::fault::{Script, UsageFault};
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

pub(super) fn stream(request: &Request, context: &CallContext<'_>) -> Result<Reply, Refusal> {
    let mut seed = context.seed.clone();
    let identity = Identity::of(context, &mut seed);
    let outputs = outputs(request, context)?;
    let counts = TokenCounts::of(request, &outputs, context.script);
    context.true_usage.set(Some(counts.true_usage()));
    let choices = outputs
        .into_iter()
        .enumerate()
        .map(|(index, output)| {
            ChoiceStream::new(index, output, request, identity.created, &mut seed)
        })
        .collect();
    Ok(Reply::events(Chunks {
        identity,
        model: context.name.to_owned(),
        script: context.script.clone(),
        counts,
        include_usage: request.streaming.include_usage,
        obfuscation: request.streaming.obfuscation,
        seed,
        queue: choices,
        content_events: 0,
        stage: Stage::Speaking,
    }))
}

/// An error with status 200, as a stream if the caller asked for one.
pub(super) fn error_in_200(request: &Value, model: &str) -> Reply {
    let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, model);
    if wants_stream(request) {
        Reply::events(std::iter::once(error_event(&refusal)))
    } else {
        Reply::json(StatusCode::OK, error_json(&refusal))
    }
}

/// An empty object, as a stream if the caller asked for one.
pub(super) fn empty_object(request: &Value) -> Reply {
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

struct Chunks {
    identity: Identity,
    model: String,
    script: Script,
    counts: TokenCounts,
    include_usage: bool,
    obfuscation: bool,
    seed: Seed,
    /// The choices take turns: each sends one chunk, then the next choice follows.
    queue: VecDeque<ChoiceStream>,
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
                    if let Some(event) = self.fault_event().or_else(|| self.next_content()) {
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
    /// The event that a script inserts at this point.
    fn fault_event(&mut self) -> Option<Event> {
        let events = &mut self.script.events;
        if events
            .error_after
            .or(events.failure_after)
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

    fn next_content(&mut self) -> Option<Event> {
        loop {
            let mut choice_stream = self.queue.pop_front()?;
            let Some(spoken) = choice_stream.next() else {
                continue;
            };
            let event = self.chunk(&choice_stream, spoken);
            if !choice_stream.has_ended() {
                self.queue.push_back(choice_stream);
            }
            if let Some(event) = event {
                return Some(event);
            }
        }
    }

    fn chunk(&mut self, choice_stream: &ChoiceStream, spoken: ChoiceChunk) -> Option<Event> {
        let finishing = spoken.finish.is_some();
        if finishing && self.script.events.no_finish {
            return None;
        }
        let usage = match self.script.usage {
            UsageFault::Running | UsageFault::Shrinking if spoken.content => {
                Some(self.counts.so_far(self.content_events + 1))
            }
            UsageFault::OnFinish if finishing && self.queue.is_empty() => {
                self.counts.reported(UsageFault::OnFinish)
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
            index: choice_stream.index(),
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
            .then(|| self.counts.reported(self.script.usage))
            .flatten()?;
        let empty = (self.script.usage == UsageFault::Costed).then(|| ChunkChoice {
            index: 0,
            delta: Delta::role(false),
            logprobs: None,
            finish_reason: None,
        });
        Some(self.write(EventKind::Usage, empty.as_slice(), Some(usage)))
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
            // If the caller asked for usage, it is null in all chunks except the last.
            usage: match usage {
                Some(usage) => OptionalMember::Given(usage),
                None if self.include_usage => OptionalMember::Null,
                None => OptionalMember::Absent,
            },
            obfuscation,
        };
        to_event(kind, &chunk)
    }
}

fn to_event(kind: EventKind, chunk: &impl Serialize) -> Event {
    let mut bytes = b"data: ".to_vec();
    // Strings, numbers and checked raw values always serialize into memory.
    let _ = serde_json::to_writer(&mut bytes, chunk);
    bytes.extend_from_slice(b"\n\n");
    Event {
        kind,
        bytes: bytes.into(),
    }
}

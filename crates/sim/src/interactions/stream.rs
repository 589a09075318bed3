//! Writes the streamed answer. Events are created one by one as they are sent.

use super::plan::{Ending, Identity, InteractionPlan, PlannedStep, plan};
use super::request::Request;
use super::shape::{Annotation, Content, Delta, Event as WireEvent, Metadata, Step};
use super::usage::{self, Usage};
use crate::call_context::CallContext;
use crate::fault::{Script, UsageFault};
use crate::google::{Refusal, TokenCounts, compact};
use crate::model::Pieces;
use crate::reply::{Event, EventKind, Reply};
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use std::vec;

const DONE: &[u8] = b"event: done\ndata: [DONE]\n\n";

pub(super) fn stream(request: &Request, context: &CallContext<'_>) -> Result<Reply, Refusal> {
    let InteractionPlan {
        identity,
        steps,
        ending,
        counts,
    } = plan(request, context)?;
    Ok(Reply::events(Events {
        identity,
        ending,
        counts,
        model: context.name.to_owned(),
        script: context.script.clone(),
        steps: steps.into_iter(),
        index: 0,
        content_sent: 0,
        stage: Stage::Created,
    }))
}

/// Writes a refusal that occurs after the stream has begun: as an event, but with the HTTP status of the refusal.
pub(super) fn late_failure(refusal: &Refusal) -> Reply {
    let mut reply = only_error(refusal);
    reply.status = refusal.status;
    reply
}

pub(super) fn only_error(refusal: &Refusal) -> Reply {
    Reply::events(std::iter::once(error_event(refusal)))
}

/// A stream with an empty object and the end mark.
pub(super) fn only_empty() -> Reply {
    let empty = Event {
        kind: EventKind::Content,
        bytes: Bytes::from_static(b"data: {}\n\n"),
    };
    Reply::events([empty, done()].into_iter())
}

fn done() -> Event {
    Event {
        kind: EventKind::Frame,
        bytes: Bytes::from_static(DONE),
    }
}

fn error_event(refusal: &Refusal) -> Event {
    let mut data = refusal.interactions_envelope();
    data["event_type"] = json!("error");
    Event {
        kind: EventKind::Frame,
        bytes: [b"event: error\ndata: ", compact(&data).as_slice(), b"\n\n"]
            .concat()
            .into(),
    }
}

struct Events {
    identity: Identity,
    ending: Ending,
    counts: TokenCounts,
    model: String,
    script: Script,
    steps: vec::IntoIter<PlannedStep>,
    /// The index of the current step.
    index: usize,
    /// The number of content events so far.
    content_sent: u64,
    stage: Stage,
}

/// The next kind of event in the stream.
enum Stage {
    Created,
    Status,
    NextStep,
    Thought(Pieces, Option<String>),
    Text(Pieces, Option<Annotation>, Option<Content>),
    Picture(Option<Content>),
    Arguments(Pieces),
    StepStop,
    Completed,
    Done,
    Ended,
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            if self.speaking()
                && let Some(event) = self.fault_event()
            {
                return Some(event);
            }
            match std::mem::replace(&mut self.stage, Stage::Ended) {
                Stage::Created => {
                    self.stage = Stage::Status;
                    let interaction = self.identity.begun();
                    return Some(to_event(
                        EventKind::Frame,
                        &WireEvent::Created { interaction },
                    ));
                }
                Stage::Status => {
                    self.stage = Stage::NextStep;
                    let update = WireEvent::StatusUpdate {
                        interaction_id: &self.identity.id,
                        status: "in_progress",
                    };
                    return Some(to_event(EventKind::Frame, &update));
                }
                Stage::NextStep => match self.steps.next() {
                    Some(step) => return Some(self.start(step)),
                    None if self.script.events.no_finish => {}
                    None => self.stage = Stage::Completed,
                },
                Stage::Thought(mut pieces, signature) => {
                    if let Some(piece) = pieces.next() {
                        let content = Content::text(piece);
                        self.stage = Stage::Thought(pieces, signature);
                        return Some(self.content(Delta::ThoughtSummary { content }));
                    }
                    self.stage = Stage::StepStop;
                    if let Some(signature) = signature {
                        let delta = Delta::ThoughtSignature { signature };
                        return Some(self.delta(EventKind::Frame, delta));
                    }
                }
                Stage::Text(mut pieces, annotation, picture) => {
                    if let Some(piece) = pieces.next() {
                        let text = piece.to_owned();
                        self.stage = Stage::Text(pieces, annotation, picture);
                        return Some(self.content(Delta::Text { text }));
                    }
                    self.stage = Stage::Picture(picture);
                    if let Some(annotation) = annotation {
                        let annotations = [annotation];
                        let delta = Delta::Annotations { annotations };
                        return Some(self.delta(EventKind::Frame, delta));
                    }
                }
                Stage::Picture(picture) => {
                    self.stage = Stage::StepStop;
                    if let Some(Content::Image { data, mime_type }) = picture {
                        return Some(self.content(Delta::Image { data, mime_type }));
                    }
                }
                Stage::Arguments(mut pieces) => {
                    if let Some(piece) = pieces.next() {
                        let arguments = piece.to_owned();
                        self.stage = Stage::Arguments(pieces);
                        return Some(self.content(Delta::Arguments { arguments }));
                    }
                    self.stage = Stage::StepStop;
                }
                Stage::StepStop => {
                    self.stage = Stage::NextStep;
                    let stop = WireEvent::StepStop {
                        index: self.index,
                        usage: self.running(),
                    };
                    self.index += 1;
                    return Some(to_event(EventKind::Frame, &stop));
                }
                Stage::Completed => {
                    self.stage = Stage::Done;
                    let usage = usage::reported(self.counts, self.script.usage);
                    let interaction = self.identity.ended(&self.ending, usage);
                    return Some(to_event(
                        EventKind::Usage,
                        &WireEvent::Completed { interaction },
                    ));
                }
                Stage::Done if self.script.events.no_done => {}
                Stage::Done => return Some(done()),
                Stage::Ended => return None,
            }
        }
    }
}

impl Events {
    fn speaking(&self) -> bool {
        !matches!(
            self.stage,
            Stage::Created | Stage::Status | Stage::Completed | Stage::Done | Stage::Ended
        )
    }

    /// The event that a script inserts at this point.
    fn fault_event(&mut self) -> Option<Event> {
        let events = &mut self.script.events;
        if events
            .error_after
            .is_some_and(|after| self.content_sent >= after)
        {
            self.stage = Stage::Ended;
            let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, &self.model);
            return Some(error_event(&refusal));
        }
        if events
            .garbage_after
            .is_some_and(|after| self.content_sent >= after)
        {
            events.garbage_after = None;
            let garbage = b"event: step.delta\ndata: {\"event_type\":\"step.de\n\n";
            return Some(Event {
                kind: EventKind::Frame,
                bytes: Bytes::from_static(garbage),
            });
        }
        None
    }

    /// Opens a step. With `early-content`, the event already contains the first piece of a text or thought, or all
    /// arguments of a call.
    fn start(&mut self, planned: PlannedStep) -> Event {
        let early = self.script.events.early_content;
        let first = |pieces: &mut Pieces| -> Vec<Content> {
            let piece = early.then(|| pieces.next().map(Content::text));
            piece.flatten().into_iter().collect()
        };
        let (step, at) = match planned {
            PlannedStep::Thought { summary, signature } => {
                let mut pieces = summary.pieces();
                let step = Step::Thought {
                    signature: None,
                    summary: first(&mut pieces),
                };
                (step, Stage::Thought(pieces, signature))
            }
            PlannedStep::Output {
                text,
                annotation,
                picture,
                ..
            } => {
                let mut pieces = text.pieces();
                let step = Step::ModelOutput {
                    content: first(&mut pieces),
                    error: None,
                };
                (step, Stage::Text(pieces, annotation, picture))
            }
            PlannedStep::Call {
                id,
                name,
                arguments,
                value,
            } => {
                let (arguments, at) = if early {
                    (value, Stage::StepStop)
                } else {
                    (
                        Value::Object(serde_json::Map::new()),
                        Stage::Arguments(arguments.pieces()),
                    )
                };
                let step = Step::FunctionCall {
                    id,
                    name,
                    arguments,
                };
                (step, at)
            }
        };
        self.stage = at;
        let start = WireEvent::StepStart {
            index: self.index,
            step,
        };
        let kind = if early {
            self.content_sent += 1;
            EventKind::Content
        } else {
            EventKind::Frame
        };
        to_event(kind, &start)
    }

    fn content(&mut self, delta: Delta) -> Event {
        self.content_sent += 1;
        self.delta(EventKind::Content, delta)
    }

    fn delta(&self, kind: EventKind, delta: Delta) -> Event {
        let delta = WireEvent::StepDelta {
            index: self.index,
            delta,
            metadata: self.running().map(|total_usage| Metadata { total_usage }),
        };
        to_event(kind, &delta)
    }

    /// The usage so far; `None` unless a script asks for it.
    fn running(&self) -> Option<Usage> {
        matches!(
            self.script.usage,
            UsageFault::Running | UsageFault::Shrinking
        )
        .then(|| usage::running(self.counts.so_far(self.content_sent)))
    }
}

fn to_event(kind: EventKind, event: &WireEvent<'_>) -> Event {
    let head = format!("event: {}\ndata: ", event.name());
    let bytes = [head.as_bytes(), compact(event).as_slice(), b"\n\n"].concat();
    Event {
        kind,
        bytes: bytes.into(),
    }
}

//! Writes the streamed answer. Events are created one by one as they are sent.

use super::answer::Identity;
use super::candidate_stream::{CandidateEvent, CandidateStream};
use super::path::Form;
use super::plan::plans;
use super::request::Request;
use super::shape::Candidate;
use super::usage::{self, Usage};
use crate::call_context::CallContext;
use crate::fault::{Script, UsageFault};
use crate::google::{Refusal, TokenCounts, compact};
use crate::reply::{Event, EventKind, Reply};
use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use std::collections::VecDeque;

const JSON: &str = "application/json; charset=UTF-8";

pub(super) fn stream(
    request: &Request,
    context: &CallContext<'_>,
    form: Form,
) -> Result<Reply, Refusal> {
    let mut seed = context.seed.clone();
    let identity = Identity::of(context, &mut seed);
    let (plans, outputs) = plans(request, context, &mut seed)?;
    let counts = TokenCounts::of(
        &request.prompt,
        &outputs,
        request.picture_tokens(),
        context.script,
    );
    context.true_usage.set(Some(counts.true_usage()));
    let mut frames = Frames::new(form);
    if let Some(reason) = &context.script.text.blocked {
        let usage = usage::reported(counts.unanswered(), context.script.usage);
        let event = frames.event(EventKind::Usage, &compact(&identity.blocked(reason, usage)));
        return Ok(reply(
            form,
            [Some(event), frames.end()].into_iter().flatten(),
        ));
    }
    let events = Events {
        identity,
        frames,
        model: context.name.to_owned(),
        script: context.script.clone(),
        counts,
        queue: plans.into_iter().map(CandidateStream::new).collect(),
        content_sent: 0,
        stage: Stage::Speaking,
    };
    Ok(reply(form, events))
}

pub(super) fn single_event(form: Form, value: &Value) -> Reply {
    let mut frames = Frames::new(form);
    let event = frames.event(EventKind::Content, &compact(value));
    reply(form, [Some(event), frames.end()].into_iter().flatten())
}

fn reply(form: Form, events: impl Iterator<Item = Event> + Send + 'static) -> Reply {
    match form {
        Form::Array => Reply::events_as(JSON, events),
        Form::Whole | Form::Events => Reply::events(events),
    }
}

/// Frames events as server-sent events, or as items of an array.
struct Frames {
    array: bool,
    begun: bool,
}

impl Frames {
    fn new(form: Form) -> Self {
        Self {
            array: form == Form::Array,
            begun: false,
        }
    }

    fn event(&mut self, kind: EventKind, json: &[u8]) -> Event {
        let bytes = match (self.array, self.begun) {
            (false, _) => [b"data: ", json, b"\r\n\r\n"].concat(),
            (true, false) => [b"[", json].concat(),
            (true, true) => [b"\n,\r\n", json].concat(),
        };
        self.begun = true;
        Event {
            kind,
            bytes: bytes.into(),
        }
    }

    /// The end mark after the last event; `None` for server-sent events.
    fn end(&self) -> Option<Event> {
        let bytes: &[u8] = match (self.array, self.begun) {
            (false, _) => return None,
            (true, true) => b"\n]\n",
            (true, false) => b"[]\n",
        };
        Some(Event {
            kind: EventKind::Frame,
            bytes: Bytes::copy_from_slice(bytes),
        })
    }
}

struct Events {
    identity: Identity,
    frames: Frames,
    model: String,
    script: Script,
    counts: TokenCounts,
    /// The candidates take turns: each sends one event, then the next candidate follows.
    queue: VecDeque<CandidateStream>,
    content_sent: u64,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Speaking,
    Closing,
    Ended,
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            match self.stage {
                Stage::Speaking => {
                    if let Some(event) = self.fault_event().or_else(|| self.next_content()) {
                        return Some(event);
                    }
                    self.stage = Stage::Closing;
                }
                Stage::Closing => {
                    self.stage = Stage::Ended;
                    // Only an array has an end mark.
                    if !self.script.events.no_done
                        && let Some(end) = self.frames.end()
                    {
                        return Some(end);
                    }
                }
                Stage::Ended => return None,
            }
        }
    }
}

impl Events {
    /// The event that a script inserts at this point.
    fn fault_event(&mut self) -> Option<Event> {
        let events = &mut self.script.events;
        if events
            .error_after
            .is_some_and(|after| self.content_sent >= after)
        {
            self.stage = Stage::Closing;
            let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, &self.model);
            let json = compact(&refusal.generate_envelope());
            return Some(self.frames.event(EventKind::Frame, &json));
        }
        if events
            .garbage_after
            .is_some_and(|after| self.content_sent >= after)
        {
            events.garbage_after = None;
            let json = br#"{"candidates":[{"content":{"par"#;
            return Some(self.frames.event(EventKind::Frame, json));
        }
        None
    }

    fn next_content(&mut self) -> Option<Event> {
        loop {
            let mut candidate_stream = self.queue.pop_front()?;
            match candidate_stream.next() {
                Some(CandidateEvent::Part(candidate)) => {
                    self.queue.push_back(candidate_stream);
                    self.content_sent += 1;
                    let usage = self.running();
                    return Some(self.write(EventKind::Content, candidate, usage));
                }
                Some(CandidateEvent::Ending(candidate)) if !self.script.events.no_finish => {
                    let last = self.queue.is_empty();
                    let (kind, usage) = if last {
                        (
                            EventKind::Usage,
                            usage::reported(self.counts, self.script.usage),
                        )
                    } else {
                        (EventKind::Frame, self.running())
                    };
                    return Some(self.write(kind, candidate, usage));
                }
                Some(CandidateEvent::Ending(_)) | None => {}
            }
        }
    }

    /// The usage so far, which the vendor sends with every event. For most faults it is `None`, so that the client does
    /// not get the true usage before the wrong one. `Shrinking` needs a larger usage before the final one, so it keeps
    /// the true usage.
    fn running(&self) -> Option<Usage> {
        match self.script.usage {
            UsageFault::Exact
            | UsageFault::Running
            | UsageFault::Shrinking
            | UsageFault::Unasked => Some(usage::running(self.counts.so_far(self.content_sent))),
            _ => None,
        }
    }

    fn write(&mut self, kind: EventKind, candidate: Candidate, usage: Option<Usage>) -> Event {
        let candidates = [candidate];
        let json = compact(&self.identity.response(&candidates, usage));
        self.frames.event(kind, &json)
    }
}

//! Simulates Azure's content filter, which adds members to chat answers and chunks to their streams.

use crate::reply::{Content, Event, EventKind, Reply};
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Adds the results of the filter to an answer.
pub(super) fn with_filters(mut reply: Reply) -> Reply {
    if reply.status != StatusCode::OK {
        return reply;
    }
    reply.content = match reply.content {
        Content::Whole(bytes) => Content::Whole(whole(bytes)),
        Content::Events(events) => Content::Events(Box::new(FilteredEvents {
            events,
            ready: VecDeque::from([prompt_chunk()]),
        })),
    };
    reply
}

fn whole(bytes: Bytes) -> Bytes {
    let Ok(mut answer) = serde_json::from_slice::<Value>(&bytes) else {
        return bytes;
    };
    answer["prompt_filter_results"] = prompt_results();
    add_to_choices(&mut answer);
    answer.to_string().into()
}

struct FilteredEvents {
    events: Box<dyn Iterator<Item = Event> + Send>,
    ready: VecDeque<Event>,
}

impl Iterator for FilteredEvents {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.ready.pop_front() {
            return Some(event);
        }
        let event = self.events.next()?;
        let Some(mut chunk) = data_of(&event.bytes) else {
            return Some(event);
        };
        add_to_choices(&mut chunk);
        let is_last = |choice: &Value| choice["finish_reason"].is_string();
        let choices = chunk["choices"].as_array();
        if choices.is_some_and(|choices| choices.iter().any(is_last)) {
            self.ready.push_back(late_chunk());
        }
        Some(Event {
            kind: event.kind,
            bytes: framed(&chunk),
        })
    }
}

fn data_of(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    let data = text.strip_prefix("data: ")?;
    serde_json::from_str(data.trim_end())
        .ok()
        .filter(Value::is_object)
}

fn framed(chunk: &Value) -> Bytes {
    format!("data: {chunk}\n\n").into()
}

fn add_to_choices(answer: &mut Value) {
    let Some(choices) = answer["choices"].as_array_mut() else {
        return;
    };
    for choice in choices {
        choice["content_filter_results"] = results();
    }
}

/// The first chunk of every stream. It has neither id nor choices, only the filter results of the prompt.
fn prompt_chunk() -> Event {
    frame(&json!({
        "id": "", "object": "", "created": 0, "model": "", "choices": [],
        "prompt_filter_results": prompt_results(), "usage": null,
    }))
}

/// The chunk of the asynchronous filter. It follows the chunk with the finish reason, and has no delta.
fn late_chunk() -> Event {
    frame(&json!({
        "id": "", "object": "", "created": 0, "model": "",
        "choices": [{
            "index": 0, "finish_reason": null, "content_filter_results": results(),
            "content_filter_offsets": { "check_offset": 44, "start_offset": 44, "end_offset": 198 },
        }],
        "usage": null,
    }))
}

fn frame(chunk: &Value) -> Event {
    Event {
        kind: EventKind::Frame,
        bytes: framed(chunk),
    }
}

fn prompt_results() -> Value {
    json!([{ "prompt_index": 0, "content_filter_results": results() }])
}

fn results() -> Value {
    let safe = || json!({ "filtered": false, "severity": "safe" });
    json!({ "hate": safe(), "self_harm": safe(), "sexual": safe(), "violence": safe() })
}

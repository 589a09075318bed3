//! Writes the streamed answer.

use super::answer::{failure, picture};
use super::family::Family;
use super::picture_spec::PictureSpec;
use super::usage;
use crate::call_context::CallContext;
use crate::openai::{Refusal, error_json};
use crate::reply::{Event, EventKind, Reply};
use crate::seal::encode;
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

/// Writes a stream. `edits` determines the names of the events.
pub(super) fn stream(spec: &PictureSpec, edits: bool, context: &CallContext<'_>) -> Reply {
    let prefix = if edits {
        "image_edit"
    } else {
        "image_generation"
    };
    let events = match spec.family {
        Family::Content => content(spec, prefix, context),
        Family::Gpt | Family::VideoA => gpt(spec, prefix, context),
    };
    Reply::events(with_faults(events, context).into_iter())
}

/// Creates the requested previews and a result for each picture.
fn gpt(spec: &PictureSpec, prefix: &str, context: &CallContext<'_>) -> Vec<Event> {
    let common = |mut event: Value| {
        event["created_at"] = context.created.into();
        event["size"] = spec.size_text().into();
        event["quality"] = spec.quality.clone().into();
        event["background"] = if spec.transparent {
            "transparent"
        } else {
            "opaque"
        }
        .into();
        event["output_format"] = spec.format.name().into();
        event
    };
    let mut events = Vec::new();
    for index in 0..spec.count {
        for preview in 0..spec.previews {
            events.push(named(
                EventKind::Content,
                &common(json!({
                    "type": format!("{prefix}.partial_image"),
                    "b64_json": encode(&spec.preview(index, preview)),
                    "partial_image_index": preview,
                })),
            ));
        }
        let mut done = common(json!({
            "type": format!("{prefix}.completed"),
            "b64_json": encode(&spec.picture(index)),
        }));
        if let Some(usage) = usage::reported(spec, 1, context) {
            done["usage"] = usage;
        }
        events.push(named(EventKind::Content, &done));
    }
    events
}

/// Creates one event for each picture, an event without a picture, and the end mark.
fn content(spec: &PictureSpec, prefix: &str, context: &CallContext<'_>) -> Vec<Event> {
    let mut seed = context.seed.clone();
    let model = context.reported_model();
    let failing = context.script.text.content_filter;
    let good = spec.count - u64::from(failing && spec.count > 0);
    let mut events = Vec::new();
    for index in 0..good {
        let mut event = picture(spec, index, &mut seed);
        event["type"] = format!("{prefix}.partial_succeeded").into();
        event["model"] = model.clone().into();
        event["created"] = context.created.into();
        event["image_index"] = index.into();
        event["size"] = spec.size_text().into();
        events.push(named(EventKind::Content, &event));
    }
    if failing {
        events.push(named(
            EventKind::Content,
            &json!({ "type": format!("{prefix}.partial_failed"), "model": model,
                     "created": context.created, "image_index": good, "error": failure() }),
        ));
    }
    let mut done = json!({ "type": format!("{prefix}.completed"), "model": model,
                           "created": context.created });
    if let Some(usage) = usage::reported(spec, good, context) {
        done["usage"] = usage;
    }
    events.push(named(EventKind::Usage, &done));
    events.push(Event {
        kind: EventKind::Frame,
        bytes: Bytes::from_static(b"data: [DONE]\n\n"),
    });
    events
}

fn with_faults(mut events: Vec<Event>, context: &CallContext<'_>) -> Vec<Event> {
    let faults = &context.script.events;
    if faults.no_finish || faults.no_done {
        // `no-done` drops the events after the last content event. `no-finish` drops the last content event too.
        let last = events
            .iter()
            .rposition(|event| event.kind == EventKind::Content);
        let keep = if faults.no_finish {
            last
        } else {
            last.map(|it| it + 1)
        };
        events.truncate(keep.unwrap_or(0));
    }
    let place = |after: u64| {
        usize::try_from(after)
            .unwrap_or(usize::MAX)
            .min(events.len())
    };
    if let Some(after) = faults.error_after {
        events.truncate(place(after));
        events.push(error_event(context.name));
    } else if let Some(after) = faults.garbage_after {
        let garbage = Event {
            kind: EventKind::Frame,
            bytes: Bytes::from_static(b"data: {\"type\":\n\n"),
        };
        events.insert(place(after), garbage);
    }
    events
}

pub(super) fn only_error(model: &str) -> Reply {
    Reply::events(std::iter::once(error_event(model)))
}

fn error_event(model: &str) -> Event {
    let refusal = Refusal::of_status(StatusCode::INTERNAL_SERVER_ERROR, model);
    let json = error_json(&refusal);
    let json = [b"{\"type\":\"error\",", json.get(1..).unwrap_or_default()].concat();
    Event {
        kind: EventKind::Frame,
        bytes: [b"event: error\ndata: ", &json[..], b"\n\n"]
            .concat()
            .into(),
    }
}

fn named(kind: EventKind, event: &Value) -> Event {
    let name = event["type"].as_str().unwrap_or_default();
    Event {
        kind,
        bytes: format!("event: {name}\ndata: {event}\n\n").into(),
    }
}

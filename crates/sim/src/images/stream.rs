//! The streamed answer, made while it is sent.

use super::answer::{failure, picture};
use super::family::Family;
use super::order::Order;
use super::usage;
use crate::ask::Ask;
use crate::openai::{Refusal, error_json};
use crate::reply::{Event, EventKind, Reply};
use crate::seal::encode;
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

/// `edits`: whether the events are named for that endpoint.
pub(super) fn stream(order: &Order, edits: bool, ask: &Ask<'_>) -> Reply {
    let prefix = if edits {
        "image_edit"
    } else {
        "image_generation"
    };
    let events = match order.family {
        Family::Content => content(order, prefix, ask),
        Family::Gpt | Family::VideoA => gpt(order, prefix, ask),
    };
    Reply::events(with_faults(events, ask).into_iter())
}

/// Previews and a result for each picture.
fn gpt(order: &Order, prefix: &str, ask: &Ask<'_>) -> Vec<Event> {
    let common = |mut event: Value| {
        event["created_at"] = ask.created.into();
        event["size"] = order.size_text().into();
        event["quality"] = order.quality.clone().into();
        event["background"] = if order.transparent {
            "transparent"
        } else {
            "opaque"
        }
        .into();
        event["output_format"] = order.format.name().into();
        event
    };
    let mut events = Vec::new();
    for index in 0..order.count {
        for preview in 0..order.previews {
            events.push(named(
                EventKind::Content,
                &common(json!({
                    "type": format!("{prefix}.partial_image"),
                    "b64_json": encode(&order.preview(index, preview)),
                    "partial_image_index": preview,
                })),
            ));
        }
        let mut done = common(json!({
            "type": format!("{prefix}.completed"),
            "b64_json": encode(&order.picture(index)),
        }));
        if let Some(usage) = usage::told(order, 1, ask) {
            done["usage"] = usage;
        }
        events.push(named(EventKind::Content, &done));
    }
    events
}

/// Pictures one by one, then an end without any.
fn content(order: &Order, prefix: &str, ask: &Ask<'_>) -> Vec<Event> {
    let mut seed = ask.seed.clone();
    let model = ask.reported_model();
    let failing = ask.script.text.content_filter;
    let good = order.count - u64::from(failing && order.count > 0);
    let mut events = Vec::new();
    for index in 0..good {
        let mut event = picture(order, index, &mut seed);
        event["type"] = format!("{prefix}.partial_succeeded").into();
        event["model"] = model.clone().into();
        event["created"] = ask.created.into();
        event["image_index"] = index.into();
        event["size"] = order.size_text().into();
        events.push(named(EventKind::Content, &event));
    }
    if failing {
        events.push(named(
            EventKind::Content,
            &json!({ "type": format!("{prefix}.partial_failed"), "model": model,
                     "created": ask.created, "image_index": good, "error": failure() }),
        ));
    }
    let mut done = json!({ "type": format!("{prefix}.completed"), "model": model,
                           "created": ask.created });
    if let Some(usage) = usage::told(order, good, ask) {
        done["usage"] = usage;
    }
    events.push(named(EventKind::Usage, &done));
    events.push(Event {
        kind: EventKind::Frame,
        bytes: Bytes::from_static(b"data: [DONE]\n\n"),
    });
    events
}

fn with_faults(mut events: Vec<Event>, ask: &Ask<'_>) -> Vec<Event> {
    let faults = &ask.script.events;
    if faults.no_finish || faults.no_done {
        // Without its end a stream has previews or single pictures alone.
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
        events.push(error_event(ask.name));
    } else if let Some(after) = faults.garbage_after {
        let garbage = Event {
            kind: EventKind::Frame,
            bytes: Bytes::from_static(b"data: {\"type\":\n\n"),
        };
        events.insert(place(after), garbage);
    }
    events
}

/// An error under status 200, as the only event.
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

//! Rewrites a finished answer into the form that a script asks for.
//!
//! The protocols do not know these habits. If the script has none, answers are not parsed again.

use crate::reply::{Content, Event, EventKind, Reply};
use bytes::Bytes;
use serde_json::Value;
use std::collections::VecDeque;

/// The ways in which an answer differs from the documented form. The default is the documented form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Habits {
    /// Members that are left out at every level.
    pub(crate) without: Vec<String>,
    /// Whether events have no `event:` line.
    pub(crate) no_event_lines: bool,
    /// Whether all `done` events come together, before the last event (Responses).
    pub(crate) late_done: bool,
    /// Whether the last event itself has the members of the interaction, instead of an `interaction` object
    /// (Interactions).
    pub(crate) flat_end: bool,
}

/// Rewrites the events of a stream, or the JSON object of a whole answer.
pub(crate) fn apply(mut reply: Reply, habits: &Habits) -> Reply {
    if *habits == Habits::default() {
        return reply;
    }
    reply.content = match reply.content {
        Content::Whole(bytes) => Content::Whole(rewrite_whole(bytes, habits)),
        Content::Events(events) => Content::Events(Box::new(RewrittenEvents {
            events,
            habits: habits.clone(),
            held: VecDeque::new(),
            ready: VecDeque::new(),
            sent: 0,
        })),
    };
    reply
}

fn rewrite_whole(bytes: Bytes, habits: &Habits) -> Bytes {
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(mut value) => {
            remove_members(&mut value, &habits.without);
            value.to_string().into()
        }
        Err(_) => bytes,
    }
}

struct RewrittenEvents {
    events: Box<dyn Iterator<Item = Event> + Send>,
    habits: Habits,
    /// The `done` events that are held back until the last event.
    held: VecDeque<Event>,
    ready: VecDeque<Event>,
    /// The number of events sent so far, which is the sequence number of the next one.
    sent: u64,
}

impl Iterator for RewrittenEvents {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        while self.ready.is_empty() {
            match self.events.next() {
                Some(event) if self.habits.late_done && is_done(&event) => {
                    self.held.push_back(event);
                }
                Some(event) => {
                    // In Responses, the usage event is the last event.
                    if event.kind == EventKind::Usage {
                        self.ready.append(&mut self.held);
                    }
                    self.ready.push_back(event);
                }
                None if self.held.is_empty() => return None,
                None => self.ready.append(&mut self.held),
            }
        }
        let event = self.ready.pop_front()?;
        let bytes = self.rewrite(&event.bytes).unwrap_or(event.bytes);
        self.sent += 1;
        Some(Event { bytes, ..event })
    }
}

impl RewrittenEvents {
    /// Rewrites one event; `None` if it is not UTF-8.
    fn rewrite(&self, bytes: &[u8]) -> Option<Bytes> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut rewritten = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            if let Some(data) = line.strip_prefix("data: ") {
                match serde_json::from_str::<Value>(data) {
                    Ok(mut value) => {
                        self.rewrite_data(&mut value);
                        rewritten.push_str("data: ");
                        rewritten.push_str(&value.to_string());
                        rewritten.push('\n');
                    }
                    // The data is not JSON: it is an end mark, or a script has replaced it.
                    Err(_) => rewritten.push_str(line),
                }
            } else if !(self.habits.no_event_lines && line.starts_with("event:")) {
                rewritten.push_str(line);
            }
        }
        Some(rewritten.into())
    }

    fn rewrite_data(&self, data: &mut Value) {
        if let Some(number) = data.get_mut("sequence_number") {
            *number = self.sent.into();
        }
        if self.habits.flat_end {
            flatten_interaction(data);
        }
        remove_members(data, &self.habits.without);
    }
}

fn is_done(event: &Event) -> bool {
    let name = event.bytes.split(|byte| *byte == b'\n').next();
    name.is_some_and(|name| name.starts_with(b"event: response.") && name.ends_with(b".done"))
}

fn flatten_interaction(data: &mut Value) {
    if data.get("event_type").and_then(Value::as_str) != Some("interaction.completed") {
        return;
    }
    let Some(members) = data.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(interaction)) = members.remove("interaction") {
        members.extend(interaction);
    }
}

fn remove_members(value: &mut Value, names: &[String]) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !names.contains(name));
            for value in members.values_mut() {
                remove_members(value, names);
            }
        }
        Value::Array(items) => {
            for item in items {
                remove_members(item, names);
            }
        }
        _ => {}
    }
}

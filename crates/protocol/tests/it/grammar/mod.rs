//! Reads answers as clients do, and checks the rules that clients rely on.
//!
//! There is one listener for each dialect. Listeners are written from `docs/api` and from the
//! observed behaviour of client libraries, not from our writers. A listener checks every rule of
//! its dialect's streams and returns the answer that a client would have assembled.

mod chat;
mod generate;
mod interactions;
mod messages;
mod responses;

use protocol::Dialect;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ClientAnswer {
    pub(crate) text: String,
    pub(crate) thoughts: String,
    pub(crate) refusal: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) end: End,
    /// All input and all output tokens.
    pub(crate) usage: Option<(u64, u64)>,
    /// Signatures and encrypted reasoning, in order.
    pub(crate) opaque: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The arguments, or their text if they are not JSON.
    pub(crate) arguments: Value,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum End {
    /// The answer did not end.
    #[default]
    Open,
    /// The answer ended with this reason, as the dialect names it.
    Finished(String),
    /// The answer ended with an error of this code.
    Failed(String),
}

/// The reason why a client would fail.
pub(crate) type ClientError = String;

pub(crate) fn read_stream(dialect: Dialect, stream: &str) -> Result<ClientAnswer, ClientError> {
    for careless in ['\u{85}', '\u{2028}', '\u{2029}', '\r'] {
        ensure(!stream.contains(careless), || {
            format!("a line end of some clients: {careless:?}")
        })?;
    }
    match dialect {
        Dialect::Chat => chat::read_stream(stream),
        Dialect::Responses => responses::read_stream(stream),
        Dialect::Messages => messages::read_stream(stream),
        Dialect::Generate => generate::read_stream(stream),
        Dialect::Interactions => interactions::read_stream(stream),
    }
}

/// Reads a whole answer.
pub(crate) fn read(dialect: Dialect, body: &[u8]) -> Result<ClientAnswer, ClientError> {
    let body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    match dialect {
        Dialect::Chat => chat::read(&body),
        Dialect::Responses => responses::read(&body),
        Dialect::Messages => messages::read(&body),
        Dialect::Generate => generate::read(&body),
        Dialect::Interactions => interactions::read(&body),
    }
}

fn ensure(holds: bool, wrong: impl FnOnce() -> ClientError) -> Result<(), ClientError> {
    if holds { Ok(()) } else { Err(wrong()) }
}

struct Frame<'s> {
    name: Option<&'s str>,
    data: &'s str,
}

impl Frame<'_> {
    fn json(&self) -> Result<Value, ClientError> {
        let value: Value =
            serde_json::from_str(self.data).map_err(|error| format!("{error} in {}", self.data))?;
        ensure(value.is_object(), || format!("no object: {}", self.data))?;
        Ok(value)
    }

    /// The JSON of an event that must have a name, and the same name in `member`.
    fn named(&self, member: &str) -> Result<(String, Value), ClientError> {
        let value = self.json()?;
        let name = self.name.ok_or("an event has no name")?;
        ensure(value[member] == name, || {
            format!("the event `{name}` calls itself {}", value[member])
        })?;
        Ok((name.to_owned(), value))
    }
}

/// Splits a stream into events: an optional name, one line of data, a blank line.
fn frames(stream: &str) -> Result<Vec<Frame<'_>>, ClientError> {
    let whole = stream.is_empty() || stream.ends_with("\n\n");
    ensure(whole, || "the last event is cut off".to_owned())?;
    let frame = |event| {
        let (name, data) = match str::split_once(event, '\n') {
            Some((name, data)) => {
                let name = name.strip_prefix("event: ");
                (
                    Some(name.ok_or_else(|| format!("no event: {event}"))?),
                    data,
                )
            }
            None => (None, event),
        };
        let data = data.strip_prefix("data: ");
        let data = data.ok_or_else(|| format!("no data: {event}"))?;
        ensure(!data.contains('\n'), || format!("too many lines: {event}"))?;
        Ok(Frame { name, data })
    };
    stream.split_terminator("\n\n").map(frame).collect()
}

/// A member that must be a string.
fn text<'v>(value: &'v Value, member: &str) -> Result<&'v str, ClientError> {
    value[member]
        .as_str()
        .ok_or_else(|| format!("`{member}` is not a string in {value}"))
}

/// A member that must be an integer.
fn number(value: &Value, member: &str) -> Result<u64, ClientError> {
    value[member]
        .as_u64()
        .ok_or_else(|| format!("`{member}` is not a number in {value}"))
}

/// A member that must be a list.
fn list<'v>(value: &'v Value, member: &str) -> Result<&'v Vec<Value>, ClientError> {
    value[member]
        .as_array()
        .ok_or_else(|| format!("`{member}` is not a list in {value}"))
}

/// Arguments that are sent as text.
fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

mod tests {
    use super::*;

    /// One stream of each protocol, in the form that its clients accept.
    const REFERENCES: [(Dialect, &str); 5] = [
        (
            Dialect::Chat,
            include_str!("../../../fixtures/chat/reference.sse"),
        ),
        (
            Dialect::Responses,
            include_str!("../../../fixtures/responses/reference.sse"),
        ),
        (
            Dialect::Messages,
            include_str!("../../../fixtures/messages/reference.sse"),
        ),
        (
            Dialect::Generate,
            include_str!("../../../fixtures/generate/reference.sse"),
        ),
        (
            Dialect::Interactions,
            include_str!("../../../fixtures/interactions/reference.sse"),
        ),
    ];

    #[test]
    fn listeners_understand_the_reference_streams() {
        for (dialect, stream) in REFERENCES {
            let heard = read_stream(dialect, stream).unwrap();
            assert_eq!(heard.text, "Hi", "{dialect}");
            let call = Call {
                id: "call_a".to_owned(),
                name: "f".to_owned(),
                arguments: serde_json::json!({"x": 1}),
            };
            let id = if dialect == Dialect::Messages {
                "toolu_a"
            } else {
                "call_a"
            };
            assert_eq!(
                heard.calls,
                [Call {
                    id: id.to_owned(),
                    ..call
                }]
            );
            assert_eq!(heard.usage, Some((9, 7)), "{dialect}");
            assert!(matches!(heard.end, End::Finished(_)));
            let thinks = dialect != Dialect::Chat;
            assert_eq!(heard.thoughts, if thinks { "Think" } else { "" });
            assert_eq!(heard.opaque.len(), usize::from(thinks));
        }
    }

    /// A listener that accepts everything would prove nothing, so each listener must notice every
    /// missing and every repeated event.
    #[test]
    fn listeners_miss_every_event_that_is_left_out() {
        for (dialect, stream) in REFERENCES {
            let events: Vec<_> = stream.split_terminator("\n\n").collect();
            let whole = read_stream(dialect, stream).unwrap();
            for left_out in 0..events.len() {
                let rest = events.iter().enumerate().filter(|(at, _)| *at != left_out);
                let rest: Vec<_> = rest.flat_map(|(_, event)| [*event, "\n\n"]).collect();
                let rest = rest.concat();
                let heard = read_stream(dialect, &rest);
                assert_ne!(
                    heard,
                    Ok(whole.clone()),
                    "{dialect} without {}",
                    events[left_out]
                );
            }
            for twice in 0..events.len() {
                let again = events.iter().enumerate().flat_map(|(at, event)| {
                    std::iter::repeat_n(event, if at == twice { 2 } else { 1 })
                });
                let again: Vec<_> = again.flat_map(|event| [*event, "\n\n"]).collect();
                let again = again.concat();
                let heard = read_stream(dialect, &again);
                assert_ne!(
                    heard,
                    Ok(whole.clone()),
                    "{dialect}, twice {}",
                    events[twice]
                );
            }
        }
    }
}

//! Turns the messages of a binary event stream into server-sent events.
//!
//! | message | event |
//! |---|---|
//! | `event` of type `chunk` | the JSON in its `bytes`, named by its `type` |
//! | other `event` | its payload, named by its type; in a Converse stream, the equivalent events of Messages |
//! | `exception`, `error` | `error`, with an error object whose `type` is the name of the exception |

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use serde::Deserialize;

use super::message::{Malformed, Message, take};
use crate::canon::base64;
use crate::json::patch::{self, cut_members};
use crate::json::write::object;
use crate::json::{Cursor, Text, utf8};
use crate::messages::converse;

/// A member that a host adds to the last event of a model's stream: its own counts and times. The
/// name identifies the host.
const METRICS: &str = "amazon-bedrock-invocationMetrics";

/// Converts the bytes of a binary event stream to server-sent events.
#[derive(Debug, Default)]
pub struct ToSse {
    /// Bytes of the message that is not complete.
    rest: BytesMut,
    /// Present if the stream is a Converse stream.
    converse: Option<Box<converse::Events>>,
}

impl ToSse {
    /// For a Converse stream, whose events become Messages events.
    pub fn from_converse() -> Self {
        Self {
            converse: Some(Box::default()),
            ..Self::default()
        }
    }

    /// Takes the bytes of one read and writes the events that they complete. Events before an error
    /// are written too, so that the output does not depend on how the bytes are split into reads.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        self.rest.extend_from_slice(chunk);
        while let Some(message) = take(&mut self.rest)? {
            self.write_event(&message, out)?;
        }
        Ok(())
    }

    /// Ends the stream, which must not end within a message.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed::Cut)
        }
    }

    /// The number of bytes that wait for the rest of their message.
    pub fn held_bytes(&self) -> usize {
        self.rest.len()
    }

    fn write_event(&mut self, message: &Message, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match message.header(":message-type") {
            Some("event") => {
                let name = message.header(":event-type").ok_or(Malformed::Headers)?;
                self.write_answer(name, &message.payload, out)
            }
            Some("exception") => {
                let name = message.header(":exception-type").unwrap_or("exception");
                let text = message_of(&message.payload);
                write_error(name, &text, out);
                Ok(())
            }
            Some("error") => {
                let name = message.header(":error-code").unwrap_or("error");
                let text = message.header(":error-message").unwrap_or_default();
                write_error(name, text, out);
                Ok(())
            }
            _ => Err(Malformed::Headers),
        }
    }

    /// Writes a part of the answer. Events and members that we do not know are left to the reader of the model's
    /// protocol.
    fn write_answer(
        &mut self,
        name: &str,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        // This event only says that the stream has begun.
        if name == "initial-response" {
            return Ok(());
        }
        if let Some(converse) = &mut self.converse {
            let read = converse.event(name, payload, out);
            return read.map_err(|_| Malformed::Payload);
        }
        if name == "chunk" {
            return write_chunk(payload, out);
        }
        write_named(name, payload, out);
        Ok(())
    }
}

/// Writes the model's own event, which is encoded within the payload.
fn write_chunk(payload: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    #[derive(Deserialize)]
    struct Chunk<'a> {
        #[serde(borrow)]
        bytes: Cow<'a, str>,
    }
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<Cow<'a, str>>,
    }
    let chunk: Chunk<'_> = serde_json::from_slice(payload).map_err(|_| Malformed::Payload)?;
    let data = base64::decode(&chunk.bytes).ok_or(Malformed::Payload)?;
    let data = without_metrics(Bytes::from(data))?;
    let event: Event<'_> = serde_json::from_slice(&data).map_err(|_| Malformed::Payload)?;
    write_named(event.kind.as_deref().unwrap_or_default(), &data, out);
    Ok(())
}

fn without_metrics(data: Bytes) -> Result<Bytes, Malformed> {
    if memchr::memmem::find(&data, METRICS.as_bytes()).is_none() {
        return Ok(data);
    }
    let text = utf8(&data).map_err(|_| Malformed::Payload)?;
    let mut edits = Vec::new();
    let is_cut = |name: Text<'_>| name.is(METRICS);
    cut_members(&mut Cursor::new(text), &[], is_cut, &mut edits).map_err(|_| Malformed::Payload)?;
    Ok(patch::apply(&data, edits))
}

fn message_of(payload: &[u8]) -> String {
    #[derive(Deserialize, Default)]
    struct Exception {
        #[serde(default, alias = "Message")]
        message: String,
    }
    let exception: Exception = serde_json::from_slice(payload).unwrap_or_default();
    exception.message
}

fn write_error(name: &str, message: &str, out: &mut Vec<u8>) {
    let mut data = Vec::new();
    object(&mut data, |it| {
        it.text("type", "error");
        it.object("error", |it| {
            it.text("type", name);
            it.text("message", message);
        });
    });
    write_named("error", &data, out);
}

/// Writes an event with data in one line. Within JSON a line end can only be white space.
fn write_named(name: &str, data: &[u8], out: &mut Vec<u8>) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if !name.is_empty() && name.bytes().all(is_plain) {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(name.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    out.extend(data.iter().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        byte => *byte,
    }));
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests;

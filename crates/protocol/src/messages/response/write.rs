//! Whole messages, into the common form and out of it.

use super::block::{self, Found, Source};
use super::stop::{self, Ending};
use crate::canon::carrier::{self, Carried};
use crate::canon::{Block, Echo, Folded, Opaque, Response, Stop, Thought, arguments};
use crate::dialect::Dialect;
use crate::json::write::{self, Array};
use crate::json::{Cursor, Shape, utf8};
use crate::messages::calls::plain_id;
use crate::messages::redacted;
use crate::messages::usage::{read_usage, write_usage};
use crate::native::Broken;
use crate::rejection;
use crate::signature;
use crate::usage::Usage;

/// Reads a whole answer. An error body is none, though it came with a 200.
pub fn read_response(body: &[u8], model: &str) -> Result<Response, Broken> {
    let mut cursor = Cursor::new(utf8(body)?);
    let mut ending = Ending::default();
    let mut usage = None;
    let mut blocks = None;
    let mut error = None;
    cursor.object(|cursor, name| {
        if name.is("content") && cursor.shape()? == Shape::Array {
            let blocks = blocks.get_or_insert_with(Vec::new);
            return cursor.array(|cursor| {
                let found = block::read(cursor.value()?)?;
                blocks.extend(found.map(|found| folded(found, model)));
                Ok(())
            });
        }
        let value = cursor.value()?;
        match &*name.decode_lossy() {
            "usage" if !value.is_null() => usage = read_usage(value, None),
            "type" if value.string().is_some_and(|kind| kind.is("error")) => {
                error.get_or_insert(value);
            }
            "error" if !value.is_null() => error = Some(value),
            name => ending.note(name, value),
        }
        Ok::<(), Broken>(())
    })?;
    cursor.end()?;
    if let Some(error) = error {
        let failure = rejection::read_event(error.text().as_bytes(), model);
        return Err(Broken::Failure(failure));
    }
    let Some(mut blocks) = blocks else {
        return Err(Broken::malformed("the answer has no content"));
    };
    let has_calls = blocks.iter().any(is_call);
    let (stop, refusal) = ending.stop(has_calls);
    blocks.extend(refusal.map(|text| Folded {
        block: Block::Refusal,
        text,
        opaque: None,
        citations: Vec::new(),
        logprobs: Vec::new(),
    }));
    Ok(Response {
        blocks,
        stop,
        usage,
    })
}

fn is_call(folded: &Folded) -> bool {
    matches!(folded.block, Block::ToolCall { .. })
}

fn folded(found: Found, model: &str) -> Folded {
    let end = length(&found.text);
    let citation = |Source { url, title }| (url, title, 0, end);
    Folded {
        citations: found.citations.into_iter().map(citation).collect(),
        block: found.block,
        text: found.text,
        opaque: found.value.map(|value| block::opaque(value, model)),
        logprobs: Vec::new(),
    }
}

/// The length of a text in characters, as citations count.
pub(super) fn length(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}

/// Writes a whole answer.
pub fn write_response(response: &Response, echo: &Echo) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let refused = |folded: &Folded| folded.block == Block::Refusal;
    let stop = ended(&response.stop, response.blocks.iter().any(refused));
    write::object(&mut out, |it| {
        it.text("id", &echo.id)
            .text("type", "message")
            .text("role", "assistant")
            .text("model", &echo.model);
        it.array("content", |it| {
            let shows_thoughts = echo.request.wants_thoughts();
            let mut hidden = Vec::new();
            for folded in &response.blocks {
                if folded.block == Block::Thought && !shows_thoughts {
                    hidden.push(Thought {
                        text: folded.text.clone(),
                        opaque: folded.opaque.clone(),
                        redacted: false,
                    });
                } else {
                    write_block(it, folded, &mut hidden);
                }
            }
        });
        stop::write(it, &stop);
        let usage = response.usage.unwrap_or(estimate(echo));
        it.object("usage", |it| write_usage(it, &usage));
    });
    out
}

/// The end as this dialect tells it: what was refused in words did not simply end.
pub(super) fn ended(stop: &Stop, refused: bool) -> Stop {
    match stop {
        Stop::End if refused => Stop::Refusal { category: None },
        stop => stop.clone(),
    }
}

/// `hidden` thoughts go along in the id of the next call: the caller did not ask for them, their
/// model will.
fn write_block(it: &mut Array<'_>, folded: &Folded, hidden: &mut Vec<Thought>) {
    let text = &folded.text;
    match &folded.block {
        Block::Text | Block::Refusal => {
            // Clients send their history back, and empty text would be refused then.
            if !text.is_empty() {
                it.object(|it| {
                    it.text("type", "text").text("text", text);
                });
            }
        }
        Block::Thought => {
            let opaque = folded.opaque.as_ref();
            let value = opaque.map(|opaque| signature::told(opaque, Dialect::Messages));
            if text.is_empty() && value.is_none() {
                return;
            }
            it.object(|it| match value.as_deref().and_then(redacted::data) {
                Some(data) => {
                    it.text("type", "redacted_thinking").text("data", data);
                }
                None => {
                    it.text("type", "thinking")
                        .text("thinking", text)
                        .text("signature", value.as_deref().unwrap_or_default());
                }
            });
        }
        Block::ToolCall { id, name } => {
            let id = call_id(id, std::mem::take(hidden), folded.opaque.as_ref());
            it.object(|it| {
                it.text("type", "tool_use")
                    .text("id", &id)
                    .text("name", name)
                    .raw("input", &arguments::object(text));
            });
        }
        // A text has taken its place (`convert/pictures.rs`).
        Block::Image { .. } => {}
    }
}

/// The id of a call. Calls have no field for a signature or a hidden thought, so that they travel
/// in the id.
pub(super) fn call_id(id: &str, thoughts: Vec<Thought>, opaque: Option<&Opaque>) -> String {
    let carried = Carried {
        thoughts,
        opaque: opaque.cloned(),
    };
    carrier::load(&plain_id(id), &carried)
}

/// What is known of usage before the upstream has told it.
pub(super) fn estimate(echo: &Echo) -> Usage {
    Usage {
        input: echo.input_tokens,
        ..Usage::default()
    }
}

//! Where chat answers hold identity, usage and output. Whole answers and chunks hold them in the
//! same members.

use super::usage::read_usage;
use crate::count::Counter;
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text};
use crate::native::places::{Done, Output, Places};
use crate::native::server;
use crate::needle::Needle;
use crate::tool::{Tool, ToolCalls};

/// The event that ends a stream.
pub(super) const DONE: Done = Done {
    data: "[DONE]",
    frame: "data: [DONE]\n\n",
};

static TOOL_NEEDLES: [Needle; 1] = [Needle::new("\"annotations\"")];

/// The members of a chat completion and of its chunks.
pub(crate) static PLACES: Places = Places {
    envelope: None,
    nested: &["choices", "message", "delta"],
    id: "id",
    id_again: None,
    model: "model",
    created: Some("created"),
    shown: None,
    usage: "usage",
    read_usage: |usage, _| read_usage(usage),
    read_output,
    tool_needles: &TOOL_NEEDLES,
    needs_items: true,
    done: Some(DONE),
    data_only: false,
    usage_event: true,
    event_name: None,
    fill: None,
};

/// Reads a member that carries output. Returns whether it was one.
fn read_output(
    name: Text<'_>,
    cursor: &mut Cursor<'_>,
    output: &mut Output,
) -> Result<bool, SyntaxError> {
    if name.is("choices") {
        if cursor.shape()? == Shape::Null {
            cursor.value()?;
            return Ok(true);
        }
        output.has_items = true;
        cursor.array(|cursor| {
            output.items = output.items.saturating_add(1);
            read_choice(cursor, output)
        })?;
        return Ok(true);
    }
    if name.is("object") {
        // Some servers send `"object": "error"` instead of an `error` member.
        let value = cursor.value()?;
        output.failed |= value.string().is_some_and(|text| text.is("error"));
        return Ok(true);
    }
    Ok(false)
}

fn read_choice(cursor: &mut Cursor<'_>, output: &mut Output) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Object {
        return cursor.value().map(drop);
    }
    cursor.object(|cursor, name| {
        let holds_output = name.is("delta") || name.is("message");
        if holds_output && cursor.shape()? == Shape::Object {
            read_message(cursor, output)
        } else if name.is("error") {
            // Some routers report in this way that one of several choices failed.
            output.clean(cursor.value()?);
            Ok(())
        } else {
            let value = cursor.value()?;
            // The other members are positions and finish reasons, not output.
            if name.is("finish_reason") {
                output.said |= !value.is_null();
            } else {
                output.names_server |= server::is_named_by(name);
            }
            Ok(())
        }
    })
}

/// Reads a message or a delta. Every member except the role is output unless it is empty.
fn read_message(cursor: &mut Cursor<'_>, output: &mut Output) -> Result<(), SyntaxError> {
    let mut reasoned = false;
    cursor.object(|cursor, name| {
        let value = cursor.value()?;
        let names_server = server::is_named_by(name);
        output.names_server |= names_server;
        if names_server || value.is_null() || value.is_empty() {
            return Ok(());
        }
        output.said = true;
        if name.is("role") {
            return Ok(());
        }
        output.content = true;
        if name.is("content") || name.is("refusal") {
            count_text(value, &mut output.counter);
        } else if name.is("reasoning_content") || name.is("reasoning") {
            // Where an upstream uses both names, they hold the same text.
            if !reasoned {
                count_text(value, &mut output.counter);
            }
            reasoned = true;
        } else if name.is("annotations") {
            // Annotations are the only sign that a model with built-in search has searched.
            let mut told = ToolCalls::default();
            told.add(Tool::WebSearch, 1);
            output.tools.raise(&told);
        } else if name.is("tool_calls") || name.is("function_call") || name.is("audio") {
            count_members(value, &mut output.counter)?;
        }
        Ok(())
    })
}

/// Counts a text, or the texts of a list of parts.
fn count_text(value: Raw<'_>, counter: &mut Counter) {
    match value.string() {
        Some(text) => counter.add_string(text.raw().as_bytes()),
        None => drop(count_members(value, counter)),
    }
}

/// Counts the members, at any depth, that hold text of the model.
fn count_members(value: Raw<'_>, counter: &mut Counter) -> Result<(), SyntaxError> {
    count_in(&mut Cursor::new(value.text()), false, counter)
}

fn count_in(
    cursor: &mut Cursor<'_>,
    written: bool,
    counter: &mut Counter,
) -> Result<(), SyntaxError> {
    match cursor.shape()? {
        Shape::Object => cursor.object(|cursor, name| {
            let written = ["text", "name", "arguments", "input", "transcript"]
                .iter()
                .any(|known| name.is(known));
            count_in(cursor, written, counter)
        }),
        Shape::Array => cursor.array(|cursor| count_in(cursor, written, counter)),
        Shape::String if written => {
            counter.add_string(cursor.string()?.raw().as_bytes());
            Ok(())
        }
        _ => cursor.value().map(drop),
    }
}

//! The answer layout of Messages: where answers and events hold identity, usage, output and the end.

use super::response::stop::CATEGORIES;
use super::usage::{has_output, read_usage};
use crate::answer_layout::{AnswerLayout, MemberSet, Output, StreamEnd, fill_index};
use crate::count::Counter;
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text};
use crate::needle::Needle;
use crate::tool::Tool;
use crate::usage;

static TOOL_NEEDLES: [Needle; 1] = [Needle::new("\"server_tool_use\"")];

/// The members of a message and of events. `message_start` holds a message without output. The usage in
/// `message_delta` replaces the usage of the message, value by value.
pub(crate) static ANSWER_LAYOUT: AnswerLayout = AnswerLayout {
    envelope: Some("message"),
    nested: &["message"],
    id: "id",
    id_again: None,
    model: "model",
    created: None,
    fixed: None,
    usage: "usage",
    read_usage: |cursor, before| Ok(read_usage(cursor.value()?, before)),
    has_output: Some(has_output),
    read_output,
    tool_needles: &TOOL_NEEDLES,
    needs_items: true,
    end_mark: None,
    data_only: false,
    usage_event: false,
    event_name: Some("type"),
    fill_in: Some(fill_index),
};

/// Reads a member that carries output or the type of an event.
fn read_output(
    name: Text<'_>,
    cursor: &mut Cursor<'_>,
    output: &mut Output,
) -> Result<bool, SyntaxError> {
    if name.is("delta") || name.is("content_block") {
        read_block(cursor, output)?;
    } else if name.is("stop_details") {
        clean_details(cursor.value()?, output);
    } else if name.is("content") && cursor.shape()? == Shape::Array {
        output.has_items = true;
        cursor.array(|cursor| read_block(cursor, output))?;
    } else if name.is("type") {
        if let Some(kind) = cursor.value()?.string() {
            output.present = output.present.union(MemberSet::TYPE);
            output.failed |= kind.is("error");
            if kind.is("message_start") {
                output.usage_is_interim = true;
            } else if kind.is("message_delta") {
                output.usage_is_interim = false;
            } else if kind.is("message_stop") {
                output.end = StreamEnd::Reached;
            } else if kind.is("content_block_start") {
                output.items_started = output.items_started.saturating_add(1);
                output.required = MemberSet::INDEX;
            } else if kind.is("content_block_delta") || kind.is("content_block_stop") {
                output.required = MemberSet::INDEX;
            }
        }
    } else if name.is("index") {
        if usage::count(cursor.value()?).is_some() {
            output.present = output.present.union(MemberSet::INDEX);
        }
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Reads a block, the start of a block, or a delta. Members that are not empty are output, except those that
/// only describe the block. Counts the model's text.
fn read_block(cursor: &mut Cursor<'_>, output: &mut Output) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Object {
        return cursor.value().map(drop);
    }
    let (mut tool, mut is_server) = (None, false);
    cursor.object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("type") {
            is_server = value
                .string()
                .is_some_and(|kind| kind.is("server_tool_use"));
        } else if name.is("name") {
            tool = value
                .string()
                .and_then(|name| Tool::of(&name.decode_lossy()));
        }
        if name.is("stop_details") {
            clean_details(value, output);
        }
        let around = [
            "type",
            "id",
            "stop_reason",
            "stop_sequence",
            "stop_details",
            "container",
        ];
        if value.is_null() || value.is_empty() || around.iter().any(|known| name.is(known)) {
            return Ok(());
        }
        output.content = true;
        let written = ["text", "thinking", "partial_json", "name", "input"];
        if written.iter().any(|known| name.is(known)) {
            count(value, &mut output.counter);
        }
        Ok::<(), SyntaxError>(())
    })?;
    if let Some(tool) = tool.filter(|_| is_server) {
        output.tools.add(tool, 1);
    }
    Ok(())
}

/// Cleans the details of a refusal, except for a known category. The explanation in them is the
/// vendor's text and may identify the vendor.
fn clean_details(details: Raw<'_>, output: &mut Output) {
    if details.shape() != Shape::Object {
        return output.withhold(details);
    }
    let offset = details.span().start;
    // The caller has validated the JSON.
    let _ = Cursor::new(details.text()).object(|cursor, name| {
        let value = cursor.value()?.moved(offset);
        let is_known = |text: Text<'_>| CATEGORIES.iter().any(|known| text.is(known));
        if !(name.is("category") && value.string().is_some_and(is_known)) {
            output.withhold(value);
        }
        Ok::<(), SyntaxError>(())
    });
}

/// Counts a string as text, and arguments as the JSON that the model wrote.
fn count(value: Raw<'_>, counter: &mut Counter) {
    match value.string() {
        Some(text) => counter.add_string(text.raw().as_bytes()),
        None => counter.add(value.text().as_bytes()),
    }
}

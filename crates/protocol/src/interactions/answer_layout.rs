//! Describes where interactions and their events hold identity, usage and output.

use super::stream::missing_members;
use super::usage::read_usage;
use crate::answer_layout::{AnswerLayout, EndMark, MemberSet, Output, StreamEnd};
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text};
use crate::needle::Needle;
use crate::tool::{Tool, ToolCalls};
use crate::usage;

pub(super) const END_MARK: EndMark = EndMark {
    data: "[DONE]",
    frame: "event: done\ndata: [DONE]\n\n",
};

static TOOL_NEEDLES: [Needle; 1] = [Needle::new("_call\"")];

pub(crate) static ANSWER_LAYOUT: AnswerLayout = AnswerLayout {
    envelope: Some("interaction"),
    nested: &["interaction"],
    id: "id",
    id_again: Some("interaction_id"),
    model: "model",
    created: None,
    fixed: None,
    usage: "usage",
    read_usage: |cursor, _| cursor.value().map(read_usage),
    has_output: None,
    read_output,
    tool_needles: &TOOL_NEEDLES,
    needs_items: true,
    end_mark: Some(END_MARK),
    data_only: false,
    usage_event: false,
    event_name: Some("event_type"),
    fill_in: Some(missing_members::fill_in),
};

/// Statuses of an interaction that failed.
pub(super) const FAILED: [&str; 3] = ["failed", "cancelled", "budget_exceeded"];

/// Reads a member that holds output, or the type, status or index of an event. Returns `false` for every
/// other member.
fn read_output(
    name: Text<'_>,
    cursor: &mut Cursor<'_>,
    output: &mut Output,
) -> Result<bool, SyntaxError> {
    if name.is("event_type") {
        output.items = output.items.saturating_add(1);
        let value = cursor.value()?;
        if value.string().is_some() {
            output.present = output.present.union(MemberSet::TYPE);
        }
        let is = |name| value.string().is_some_and(|text| text.is(name));
        output.failed |= is("error");
        // Usage that is reported before the end lacks the later steps.
        output.usage_is_interim = !is("interaction.completed");
        if is("interaction.completed") {
            output.end = output.end.max(StreamEnd::Closable);
            output.required = MemberSet::ENVELOPE;
        } else if is("interaction.created") {
            output.required = MemberSet::ENVELOPE;
        } else if is("step.start") {
            output.items_started = output.items_started.saturating_add(1);
            output.required = MemberSet::INDEX;
        } else if is("step.delta") || is("step.stop") {
            output.required = MemberSet::INDEX;
        }
    } else if name.is("status") {
        output.has_items = true;
        let value = cursor.value()?;
        let text = value.string();
        output.failed |= text.is_some_and(|text| FAILED.iter().any(|known| text.is(known)));
    } else if name.is("steps") && cursor.shape()? == Shape::Array {
        output.has_items = true;
        let mut reported = ToolCalls::default();
        cursor.array(|cursor| {
            output.items = output.items.saturating_add(1);
            let step = cursor.value()?;
            note_tool(step, &mut reported);
            read_piece(&mut Cursor::new(step.text()), output)
        })?;
        output.tools.raise(&reported);
    } else if name.is("step") {
        let step = cursor.value()?;
        note_tool(step, &mut output.tools);
        read_piece(&mut Cursor::new(step.text()), output)?;
    } else if name.is("delta") {
        read_piece(cursor, output)?;
    } else if name.is("index") {
        if usage::count(cursor.value()?).is_some() {
            output.present = output.present.union(MemberSet::INDEX);
        }
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Counts a step that is a call of a tool that the upstream ran.
fn note_tool(step: Raw<'_>, tools: &mut ToolCalls) {
    if step.shape() != Shape::Object {
        return;
    }
    // The caller has validated the JSON.
    let _ = Cursor::new(step.text()).object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("type") {
            let word = value.string().map(|word| word.decode_lossy());
            let word = word.as_deref().and_then(|word| word.strip_suffix("_call"));
            let tool = word.and_then(Tool::of);
            if let Some(tool) = tool {
                tools.add(tool, 1);
            }
        }
        Ok::<(), SyntaxError>(())
    });
}

/// Members of a step or a delta that are not output.
const NOT_OUTPUT: [&str; 6] = [
    "type",
    "id",
    "call_id",
    "signature",
    "mime_type",
    "annotations",
];

/// Reads a step or a delta. All members except those in `NOT_OUTPUT` are output.
fn read_piece(cursor: &mut Cursor<'_>, output: &mut Output) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Object {
        return cursor.value().map(drop);
    }
    cursor.object(|cursor, name| {
        if (name.is("content") || name.is("summary")) && cursor.shape()? == Shape::Array {
            return cursor.array(|cursor| read_piece(cursor, output));
        }
        if name.is("content") && cursor.shape()? == Shape::Object {
            return read_piece(cursor, output);
        }
        let value = cursor.value()?;
        if value.is_null() || value.is_empty() || NOT_OUTPUT.iter().any(|known| name.is(known)) {
            return Ok(());
        }
        output.content = true;
        // The bytes of an image are not text.
        if !name.is("data") && !name.is("uri") {
            count(value, output);
        }
        Ok(())
    })
}

fn count(value: Raw<'_>, output: &mut Output) {
    let text = value.string().map_or(value.text(), |text| text.raw());
    output.counter.add_string(text.as_bytes());
}

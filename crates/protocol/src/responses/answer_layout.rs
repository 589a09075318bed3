//! The answer layout of Responses: where answers and events hold identity, usage and output.

use super::response::hosted_tools::{self, Completion};
use super::stream::missing_members;
use super::usage::read_usage;
use crate::answer_layout::{AnswerLayout, MemberSet, Output, StreamEnd, count_written};
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text};
use crate::needle::Needle;
use crate::tool::ToolCalls;
use crate::usage::count;

static TOOL_NEEDLES: [Needle; 2] = [Needle::new("_call\""), Needle::new("\"tool_usage\"")];

pub(crate) static ANSWER_LAYOUT: AnswerLayout = AnswerLayout {
    envelope: Some("response"),
    nested: &["response"],
    id: "id",
    id_again: None,
    model: "model",
    created: Some("created_at"),
    // `store` is always false (`docs/api/responses.md`).
    fixed: Some(("store", "false")),
    usage: "usage",
    read_usage: |cursor, _| cursor.value().map(read_usage),
    has_output: None,
    read_output,
    tool_needles: &TOOL_NEEDLES,
    needs_items: true,
    end_mark: None,
    data_only: false,
    usage_event: false,
    event_name: Some("type"),
    fill_in: Some(missing_members::fill_in),
};

/// Members of an item that hold text of the model.
const WRITTEN: [&str; 8] = [
    "text",
    "refusal",
    "name",
    "arguments",
    "input",
    "code",
    "query",
    "transcript",
];

/// Reads a member that carries output, or the type or the position of an event. Returns `false` for every
/// other member.
fn read_output(
    name: Text<'_>,
    cursor: &mut Cursor<'_>,
    output: &mut Output,
) -> Result<bool, SyntaxError> {
    match &*name.decode_lossy() {
        "type" => read_type(cursor.value()?, output),
        "status" => {
            let value = cursor.value()?;
            let is = |word| value.string().is_some_and(|text| text.is(word));
            output.failed |= is("failed") || is("cancelled");
        }
        "incomplete_details" => output.withhold(cursor.value()?),
        "sequence_number" => {
            if let Some(sequence) = count(cursor.value()?) {
                output.opening.sequence = Some(sequence);
                output.present = output.present.union(MemberSet::SEQUENCE);
            }
        }
        "output_index" => {
            output.index = count(cursor.value()?);
            note_present(MemberSet::INDEX, output.index.is_some(), output);
            note_begun_part(output);
        }
        "item_id" => {
            let is_id = cursor.value()?.string().is_some();
            note_present(MemberSet::ITEM_ID, is_id, output);
        }
        "content_index" | "summary_index" => {
            let is_index = count(cursor.value()?).is_some();
            note_present(MemberSet::PART, is_index, output);
        }
        "delta" => {
            let delta = cursor.value()?;
            if let Some(text) = delta.string().filter(|text| !text.is_empty()) {
                output.content = true;
                output.deltas = output.deltas.saturating_add(1);
                output.counter.add_string(text.raw().as_bytes());
            }
        }
        "item" => {
            let item = cursor.value()?;
            hosted_tools::count_call(item, Completion::ByStatus, &mut output.tools);
            if let Some(id) = missing_members::item_id(item).filter(|id| !id.is_escaped()) {
                output.last_item.clear();
                output.last_item.push_str(id.raw());
            }
            // A finished item repeats its deltas.
            if std::mem::take(&mut output.deltas) == 0 {
                read_item(item, output)?;
            }
        }
        "output" if cursor.shape()? == Shape::Array => {
            output.has_items = true;
            output.present = output.present.union(MemberSet::ITEMS);
            // The last event repeats the whole answer.
            let repeated = output.content;
            let mut reported = ToolCalls::default();
            cursor.array(|cursor| {
                output.items = output.items.saturating_add(1);
                let item = cursor.value()?;
                hosted_tools::count_call(item, Completion::ByPosition, &mut reported);
                if repeated {
                    return Ok(());
                }
                read_item(item, output)
            })?;
            output.tools.raise(&reported);
        }
        "tool_usage" => hosted_tools::read_report(cursor, &mut output.tools)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn read_type(value: Raw<'_>, output: &mut Output) {
    let Some(text) = value.string() else {
        return;
    };
    let kind = &*text.decode_lossy();
    output.present = output.present.union(MemberSet::TYPE);
    output.required = missing_members::required(kind);
    match kind {
        "response.created" => output.opening.opened = true,
        "response.completed" | "response.incomplete" => output.end = StreamEnd::Reached,
        "response.failed" | "error" => output.failed = true,
        "response.output_item.added" => {
            output.items_started = output.items_started.saturating_add(1);
        }
        "response.content_part.added" => output.begins_part = true,
        "response.reasoning_text.delta" => {
            output.adds_reasoning = true;
            note_begun_part(output);
        }
        _ => {}
    }
}

/// Records that the event has a member, unless its value is of another type.
fn note_present(member: MemberSet, is_valid: bool, output: &mut Output) {
    if is_valid {
        output.present = output.present.union(member);
    }
}

/// Records that the part to which an event adds reasoning has started. The type and the index of the
/// event may arrive in either order, so the readers of both call this function.
fn note_begun_part(output: &mut Output) {
    let is_begun = |index| output.items_with_part.contains(&index);
    if output.adds_reasoning && output.index.is_some_and(is_begun) {
        output.present = output.present.union(MemberSet::PART_STARTED);
    }
}

/// Counts an item that came without deltas.
fn read_item(item: Raw<'_>, output: &mut Output) -> Result<(), SyntaxError> {
    if item.shape() != Shape::Object {
        return Ok(());
    }
    output.content |= count_written(item, &WRITTEN, &mut output.counter)?;
    // Encrypted reasoning is output too.
    Cursor::new(item.text()).object(|cursor, name| {
        let value = cursor.value()?;
        let opaque = name.is("encrypted_content") || name.is("result");
        output.content |= opaque && !value.is_null() && !value.is_empty();
        Ok(())
    })
}

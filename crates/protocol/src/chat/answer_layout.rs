//! Describes where chat answers and chunks hold identity, usage and output.

use super::stream::fill_in;
use super::usage::read_usage;
use crate::answer_layout::{
    AnswerLayout, EndMark, MemberSet, Output, count_written, is_vendor_member,
};
use crate::count::Counter;
use crate::json::{Cursor, Integer, Raw, Shape, SyntaxError, Text};
use crate::needle::Needle;
use crate::tool::{Tool, ToolCalls};

pub(super) const END_MARK: EndMark = EndMark {
    data: "[DONE]",
    frame: "data: [DONE]\n\n",
};

static TOOL_NEEDLES: [Needle; 1] = [Needle::new("\"annotations\"")];

pub(crate) static ANSWER_LAYOUT: AnswerLayout = AnswerLayout {
    envelope: None,
    nested: &["choices", "message", "delta"],
    id: "id",
    id_again: None,
    model: "model",
    created: Some("created"),
    fixed: None,
    usage: "usage",
    read_usage: |cursor, _| read_usage(cursor),
    has_output: None,
    read_output,
    tool_needles: &TOOL_NEEDLES,
    needs_items: true,
    end_mark: Some(END_MARK),
    data_only: false,
    usage_event: true,
    event_name: None,
    fill_in: Some(fill_in),
};

/// Reads a member that holds output or may mark the answer as an error. Returns `false` for every other
/// member.
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
    output.has_filter |= name.is("prompt_filter_results") || name.is("prompt_annotations");
    Ok(false)
}

fn read_choice(cursor: &mut Cursor<'_>, output: &mut Output) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Object {
        return cursor.value().map(drop);
    }
    let mut is_numbered = false;
    let mut has_message = false;
    let mut has_wrong_delta = false;
    let mut is_finished = false;
    cursor.object(|cursor, name| {
        let is_delta = name.is("delta");
        if (is_delta || name.is("message")) && cursor.shape()? == Shape::Object {
            has_message = true;
            read_message(cursor, is_delta, output)
        } else if is_delta {
            has_wrong_delta |= is_wrong_delta(cursor.shape()?);
            cursor.value().map(drop)
        } else if name.is("error") {
            // Some routers send an `error` in a choice if one of several choices failed.
            output.withhold(cursor.value()?);
            output.has_complete_item = true;
            Ok(())
        } else {
            let value = cursor.value()?;
            // The other members are positions and finish reasons, not output.
            if name.is("finish_reason") {
                is_finished = !value.is_null();
                output.event_has_content |= is_finished;
            } else if name.is("index") {
                is_numbered = is_number(value);
            } else {
                output.has_filter |= name.is("content_filter_results");
                output.names_vendor |= is_vendor_member(name);
            }
            Ok(())
        }
    })?;
    output.has_complete_item |= has_message || is_finished;
    if has_wrong_delta || is_finished && !has_message {
        output.required = output.required.union(MemberSet::PART);
    }
    if !is_numbered {
        output.required = output.required.union(MemberSet::INDEX);
    }
    Ok(())
}

/// Whether a delta of this shape must be replaced. A list is kept, because vendor members may be cut from its
/// items.
pub(in crate::chat) const fn is_wrong_delta(shape: Shape) -> bool {
    !matches!(shape, Shape::Object | Shape::Array)
}

fn is_number(value: Raw<'_>) -> bool {
    matches!(value.integer(), Some(Integer::Value(_)))
}

/// Reads a message or a delta. Every member is output, except the role, empty members and members
/// that identify the upstream.
fn read_message(
    cursor: &mut Cursor<'_>,
    is_delta: bool,
    output: &mut Output,
) -> Result<(), SyntaxError> {
    let mut reasoned = false;
    cursor.object(|cursor, name| {
        let value = cursor.value()?;
        let names_vendor = is_vendor_member(name);
        output.names_vendor |= names_vendor;
        if names_vendor || value.is_null() || value.is_empty() {
            return Ok(());
        }
        output.event_has_content = true;
        if name.is("role") {
            return Ok(());
        }
        output.content = true;
        if name.is("content") || name.is("refusal") {
            count_text(value, &mut output.counter);
        } else if name.is("reasoning_content") || name.is("reasoning") {
            // An upstream that sends both members repeats the same text in them.
            if !reasoned {
                count_text(value, &mut output.counter);
            }
            reasoned = true;
        } else if name.is("annotations") {
            // Annotations are the only sign that a model with built-in search has searched.
            let mut reported = ToolCalls::default();
            reported.add(Tool::WebSearch, 1);
            output.tools.raise(&reported);
        } else if name.is("tool_calls") || name.is("function_call") || name.is("audio") {
            count_members(value, &mut output.counter)?;
            if is_delta && name.is("tool_calls") && !are_numbered(value)? {
                output.required = output.required.union(MemberSet::INDEX);
            }
        }
        Ok(())
    })
}

/// Whether all tool calls of a delta have an index.
fn are_numbered(calls: Raw<'_>) -> Result<bool, SyntaxError> {
    if calls.shape() != Shape::Array {
        return Ok(true);
    }
    let mut all = true;
    Cursor::new(calls.text()).array(|cursor| {
        if cursor.shape()? != Shape::Object {
            return cursor.value().map(drop);
        }
        let mut is_numbered = false;
        cursor.object(|cursor, name| {
            let value = cursor.value()?;
            is_numbered |= name.is("index") && is_number(value);
            Ok::<(), SyntaxError>(())
        })?;
        all &= is_numbered;
        Ok(())
    })?;
    Ok(all)
}

/// Counts a text, or the texts of a list of parts.
fn count_text(value: Raw<'_>, counter: &mut Counter) {
    match value.string() {
        Some(text) => counter.add_string(text.raw().as_bytes()),
        None => drop(count_members(value, counter)),
    }
}

/// Counts the model's text in all members that hold it, at any depth.
fn count_members(value: Raw<'_>, counter: &mut Counter) -> Result<(), SyntaxError> {
    let names = ["text", "name", "arguments", "input", "transcript"];
    count_written(value, &names, counter).map(drop)
}

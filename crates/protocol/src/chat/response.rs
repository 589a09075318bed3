//! Chat answers: where identity, usage and output stand, in whole answers and in chunks alike.

use super::stream::DONE;
use crate::count::Counter;
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text};
use crate::native::places::{Output, Places};
use crate::usage::{Inclusive, Usage, count};

/// Where things stand in a chat completion and in its chunks.
pub(crate) const PLACES: Places = Places {
    envelope: None,
    id: "id",
    id_again: None,
    model: "model",
    shown: None,
    usage: "usage",
    read_usage: |usage, _| read_usage(usage),
    read_output,
    needs_items: true,
    done: Some(DONE),
    data_only: false,
    usage_event: true,
};

/// Reads a usage object; see [`count`] for numbers that are none.
pub fn read_usage(usage: Raw<'_>) -> Option<Usage> {
    let mut input = None;
    let mut output = None;
    let mut total = None;
    let mut report = Inclusive::default();
    Cursor::new(usage.text())
        .object(|cursor, name| {
            match name.raw() {
                "prompt_tokens" => input = count(cursor.value()?),
                "completion_tokens" => output = count(cursor.value()?),
                "total_tokens" => total = count(cursor.value()?),
                "prompt_tokens_details" => details(cursor, |name, value| match name {
                    "cached_tokens" => report.cached_input = value,
                    "cache_write_tokens" => report.cache_write = value,
                    "audio_tokens" => report.audio_input = value,
                    "image_tokens" => report.image_input = value,
                    _ => {}
                })?,
                "completion_tokens_details" => details(cursor, |name, value| match name {
                    "reasoning_tokens" => report.reasoning = value,
                    "audio_tokens" => report.audio_output = value,
                    "image_tokens" => report.image_output = value,
                    _ => {}
                })?,
                _ => drop(cursor.value()?),
            }
            Ok::<(), SyntaxError>(())
        })
        .ok()?;
    report.input = input?;
    report.output = output?;
    // Some upstreams leave reasoning out of the completion tokens; the total then shows it.
    let sum = report.input.saturating_add(report.output);
    if total == Some(sum.saturating_add(report.reasoning)) {
        report.output = report.output.saturating_add(report.reasoning);
    }
    Some(report.into())
}

/// Reads the counts of a details object; `null` and counts that are none are left out.
fn details(cursor: &mut Cursor<'_>, mut note: impl FnMut(&str, u64)) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Object {
        return cursor.value().map(drop);
    }
    cursor.object(|cursor, name| {
        if let Some(value) = count(cursor.value()?) {
            note(name.raw(), value);
        }
        Ok(())
    })
}

/// Reads the members that carry output. Says whether the member was one of them.
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
        // Some servers say so instead of using an `error` member.
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
        } else {
            cursor.value().map(drop)
        }
    })
}

/// Reads a message or a delta. Whatever is not its role and not empty is output.
fn read_message(cursor: &mut Cursor<'_>, output: &mut Output) -> Result<(), SyntaxError> {
    let mut reasoned = false;
    cursor.object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("role") || value.is_null() || value.is_empty() {
            return Ok(());
        }
        output.content = true;
        if name.is("content") || name.is("refusal") {
            count_text(value, &mut output.counter);
        } else if name.is("reasoning_content") || name.is("reasoning") {
            // Where both names are used, they hold the same text.
            if !reasoned {
                count_text(value, &mut output.counter);
            }
            reasoned = true;
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

/// Counts the members, at any depth, in which a model writes.
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

//! Describes where Generate Content answers and chunks hold identity, usage and output.

use super::pictures;
use super::usage::read_usage;
use crate::answer_layout::{AnswerLayout, Output, StreamEnd};
use crate::json::{Cursor, Raw, Shape, SyntaxError, Text};
use crate::needle::Needle;
use crate::tool::{Tool, ToolCalls};

static TOOL_NEEDLES: [Needle; 3] = [
    Needle::new("groundingMetadata"),
    Needle::new("urlContextMetadata"),
    Needle::new("executableCode"),
];

pub(crate) static ANSWER_LAYOUT: AnswerLayout = AnswerLayout {
    envelope: None,
    nested: &[],
    id: "responseId",
    id_again: None,
    model: "modelVersion",
    created: None,
    fixed: None,
    usage: "usageMetadata",
    read_usage: |cursor, _| cursor.value().map(read_usage),
    has_output: None,
    read_output,
    tool_needles: &TOOL_NEEDLES,
    needs_items: true,
    end_mark: None,
    data_only: true,
    usage_event: false,
    event_name: None,
    fill_in: None,
};

/// Reads the candidates, and the members in which the service explains a blocked prompt or a model's status.
/// Returns `false` for every other member.
fn read_output(
    name: Text<'_>,
    cursor: &mut Cursor<'_>,
    output: &mut Output,
) -> Result<bool, SyntaxError> {
    if name.is("promptFeedback") {
        // The answer to a blocked prompt has no candidates.
        let feedback = cursor.value()?;
        if feedback.shape() == Shape::Object && !feedback.is_empty() {
            clean_messages(feedback, output);
            output.has_items = true;
            output.end = output.end.max(StreamEnd::Closable);
        }
        return Ok(true);
    }
    if name.is("modelStatus") {
        clean_messages(cursor.value()?, output);
        return Ok(true);
    }
    if !name.is("candidates") {
        return Ok(false);
    }
    if cursor.shape()? == Shape::Null {
        cursor.value()?;
        return Ok(true);
    }
    output.has_items = true;
    output.usage_is_interim = true;
    // Chunks may repeat search results, so their counts are not added up.
    let mut found = ToolCalls::default();
    cursor.array(|cursor| {
        output.items = output.items.saturating_add(1);
        read_candidate(cursor, output, &mut found)
    })?;
    output.tools.raise(&found);
    if output.content {
        // A clean close after content ends the answer, with or without a finish reason
        // (`docs/api/generate-content.md`).
        output.end = output.end.max(StreamEnd::Closable);
    }
    Ok(true)
}

/// Removes the service's explanations of a blocked prompt or of a model's status.
fn clean_messages(object: Raw<'_>, output: &mut Output) {
    if object.shape() != Shape::Object {
        return;
    }
    let offset = object.span().start;
    // The caller has validated the JSON.
    let _ = Cursor::new(object.text()).object(|cursor, name| {
        let value = cursor.value()?.moved(offset);
        let name = name.decode_lossy();
        if name.ends_with("essage") {
            output.withhold(value);
        }
        Ok::<(), SyntaxError>(())
    });
}

fn read_candidate(
    cursor: &mut Cursor<'_>,
    output: &mut Output,
    found: &mut ToolCalls,
) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Object {
        return cursor.value().map(drop);
    }
    cursor.object(|cursor, name| {
        if name.is("content") && cursor.shape()? == Shape::Object {
            return read_content(cursor, output);
        }
        let value = cursor.value()?;
        if name.is("groundingMetadata") {
            found.add(Tool::WebSearch, items_of(value, "webSearchQueries"));
            found.add(
                Tool::Maps,
                u32::from(items_of(value, "googleMapsQueries") > 0),
            );
        } else if name.is("urlContextMetadata") {
            found.add(Tool::WebFetch, items_of(value, "urlMetadata"));
        }
        if name.is("finishMessage") {
            output.withhold(value);
        }
        if name.is("finishReason") && value.shape() == Shape::String && !value.is_empty() {
            output.end = output.end.max(StreamEnd::Closable);
            output.usage_is_interim = false;
        }
        Ok(())
    })
}

fn read_content(cursor: &mut Cursor<'_>, output: &mut Output) -> Result<(), SyntaxError> {
    cursor.object(|cursor, name| {
        if !name.is("parts") || cursor.shape()? != Shape::Array {
            return cursor.value().map(drop);
        }
        cursor.array(|cursor| read_part(cursor, output))
    })
}

/// The number of items in a list that is a member of an object.
fn items_of(object: Raw<'_>, list: &str) -> u32 {
    let mut items = 0_u32;
    if object.shape() != Shape::Object {
        return items;
    }
    // The caller has validated the JSON.
    let _ = Cursor::new(object.text()).object(|cursor, name| {
        if !name.is(list) || cursor.shape()? != Shape::Array {
            return cursor.value().map(drop);
        }
        cursor.array(|cursor| {
            items = items.saturating_add(1);
            cursor.value().map(drop)
        })
    });
    items
}

/// Reads a part. Its text and objects are output, unless they are empty. A signature is not output.
fn read_part(cursor: &mut Cursor<'_>, output: &mut Output) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Object {
        return cursor.value().map(drop);
    }
    let (mut is_picture, mut is_thought) = (false, false);
    cursor.object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("thought") {
            is_thought = value.text() == "true";
        } else if name.is("text") {
            if let Some(text) = value.string().filter(|text| !text.is_empty()) {
                output.content = true;
                output.counter.add_string(text.raw().as_bytes());
            }
        } else if value.shape() == Shape::Object && !value.is_empty() {
            output.content = true;
            if name.is("executableCode") {
                output.tools.add(Tool::CodeExecution, 1);
            }
            // The bytes of an image are not text.
            if name.is("inlineData") {
                is_picture |= pictures::is_picture(value);
            } else {
                is_picture |= name.is("fileData") && pictures::is_picture(value);
                output.counter.add_string(value.text().as_bytes());
            }
        }
        Ok(())
    })?;
    if is_picture && !is_thought {
        output.pictures = output.pictures.saturating_add(1);
    }
    Ok(())
}

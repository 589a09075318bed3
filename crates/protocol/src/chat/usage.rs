//! Reads and writes the usage object of chat.

use crate::json::write::Object;
use crate::json::{Cursor, Shape, SyntaxError};
use crate::usage::{InclusiveCounts, Usage, count};

/// Reads the value at the cursor as a usage object. A number that `count` rejects counts as missing.
pub(super) fn read_usage(cursor: &mut Cursor<'_>) -> Result<Option<Usage>, SyntaxError> {
    if cursor.shape()? != Shape::Object {
        cursor.value()?;
        return Ok(None);
    }
    let mut input = None;
    let mut output = None;
    let mut total = None;
    let mut report = InclusiveCounts::default();
    cursor.object(|cursor, name| {
        match &*name.decode_lossy() {
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
            // Two vendors report the calls of their built-in tools in these members.
            "server_side_tool_usage_details" => report.tools.read(cursor, "_calls")?,
            "server_tool_use" => report.tools.read(cursor, "_requests")?,
            _ => drop(cursor.value()?),
        }
        Ok::<(), SyntaxError>(())
    })?;
    let (Some(input), Some(output)) = (input, output) else {
        return Ok(None);
    };
    (report.input, report.output) = (input, output);
    // Some upstreams include reasoning only in the total, not in the completion tokens.
    let sum = report.input.saturating_add(report.output);
    if total == Some(sum.saturating_add(report.reasoning)) {
        report.output = report.output.saturating_add(report.reasoning);
    }
    Ok(Some(report.into()))
}

pub(super) fn write_usage(it: &mut Object<'_>, usage: &Usage) {
    it.number("prompt_tokens", usage.input_total());
    it.number("completion_tokens", usage.output_total());
    it.number("total_tokens", usage.total());
    it.object("prompt_tokens_details", |it| {
        it.number("cached_tokens", usage.cached_input);
        it.number("cache_write_tokens", usage.cache_writes());
        write_media(it, usage.audio_input, usage.image_input);
    });
    it.object("completion_tokens_details", |it| {
        it.number("reasoning_tokens", usage.reasoning);
        write_media(it, usage.audio_output, usage.image_output);
    });
}

fn write_media(it: &mut Object<'_>, audio: u64, image: u64) {
    for (name, count) in [("audio_tokens", audio), ("image_tokens", image)] {
        if count > 0 {
            it.number(name, count);
        }
    }
}

/// Reads the counts of a details object. Invalid counts and `null` are skipped.
fn details(cursor: &mut Cursor<'_>, mut note: impl FnMut(&str, u64)) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Object {
        return cursor.value().map(drop);
    }
    cursor.object(|cursor, name| {
        if let Some(value) = count(cursor.value()?) {
            note(&name.decode_lossy(), value);
        }
        Ok(())
    })
}

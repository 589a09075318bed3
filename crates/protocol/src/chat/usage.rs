//! The usage object of chat.

use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::usage::{Inclusive, Usage, count};

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

//! Reads and writes the usage object of Responses.

use crate::json::write;
use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::usage::{InclusiveCounts, Usage, count};

/// Reads a usage object. `None` if the input or output count is missing or unusable.
pub(crate) fn read_usage(usage: Raw<'_>) -> Option<Usage> {
    let mut input = None;
    let mut output = None;
    let mut report = InclusiveCounts::default();
    Cursor::new(usage.text())
        .object(|cursor, name| {
            match &*name.decode_lossy() {
                "input_tokens" => input = count(cursor.value()?),
                "output_tokens" => output = count(cursor.value()?),
                "input_tokens_details" => details(cursor, |name, value| match name {
                    "cached_tokens" => report.cached_input = value,
                    "cache_write_tokens" => report.cache_write = value,
                    "audio_tokens" => report.audio_input = value,
                    "image_tokens" => report.image_input = value,
                    _ => {}
                })?,
                "output_tokens_details" => details(cursor, |name, value| match name {
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
    Some(report.into())
}

/// Writes a usage object. Clients expect every class, even if it is zero.
pub(super) fn write_usage(out: &mut Vec<u8>, usage: &Usage) {
    write::object(out, |it| {
        it.number("input_tokens", usage.input_total());
        it.object("input_tokens_details", |it| {
            it.number("cached_tokens", usage.cached_input);
            it.number("cache_write_tokens", usage.cache_writes());
        });
        it.number("output_tokens", usage.output_total());
        it.object("output_tokens_details", |it| {
            it.number("reasoning_tokens", usage.reasoning);
        });
        it.number("total_tokens", usage.total());
    });
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

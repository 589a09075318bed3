//! Reads and writes usage reports that count thoughts separately from the visible output, and tool use
//! separately from the prompt. Generate Content and Interactions have such reports, with different names.

use std::borrow::Cow;

use crate::json::write::Object;
use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::tool::{self, Tool, ToolCalls};
use crate::usage::{InclusiveCounts, Usage, count};

/// The names of the counts in a dialect.
#[derive(Debug)]
pub(crate) struct CountNames {
    /// The whole prompt, including the part that came from a cache.
    pub(crate) prompt: &'static str,
    pub(crate) tool_use: &'static str,
    pub(crate) cached: &'static str,
    /// The output without thoughts.
    pub(crate) visible: &'static str,
    pub(crate) thoughts: &'static str,
    pub(crate) prompt_by_modality: &'static str,
    pub(crate) visible_by_modality: &'static str,
    /// A list of tools and how many times each was used, if the dialect has one.
    pub(crate) tool_calls: Option<&'static str>,
    /// The count of one modality.
    pub(crate) tokens: &'static str,
}

/// Reads a usage object. Upstreams leave out counts of zero. A report without a count of the prompt
/// comes early in a stream and has no information yet.
pub(crate) fn read_usage(usage: Raw<'_>, names: &CountNames) -> Option<Usage> {
    let mut prompt = None;
    let [mut tool_use, mut cached, mut visible, mut thoughts] = [Some(0); 4];
    let mut report = InclusiveCounts::default();
    Cursor::new(usage.text())
        .object(|cursor, name| {
            let name = &*name.decode_lossy();
            if name == names.prompt_by_modality {
                let (images, sound) = modalities(cursor, names.tokens)?;
                (report.image_input, report.audio_input) = (images, sound);
            } else if name == names.visible_by_modality {
                let (images, sound) = modalities(cursor, names.tokens)?;
                (report.image_output, report.audio_output) = (images, sound);
            } else if names.tool_calls == Some(name) {
                tool_calls(cursor, &mut report.tools)?;
            } else if name == names.prompt {
                prompt = number(cursor)?;
            } else if name == names.tool_use {
                tool_use = number(cursor)?;
            } else if name == names.cached {
                cached = number(cursor)?;
            } else if name == names.visible {
                visible = number(cursor)?;
            } else if name == names.thoughts {
                thoughts = number(cursor)?;
            } else {
                cursor.value()?;
            }
            Ok::<(), SyntaxError>(())
        })
        .ok()?;
    report.input = prompt?.saturating_add(tool_use?);
    report.cached_input = cached?;
    report.reasoning = thoughts?;
    report.output = visible?.saturating_add(report.reasoning);
    Some(report.into())
}

/// A count. `null` means zero.
fn number(cursor: &mut Cursor<'_>) -> Result<Option<u64>, SyntaxError> {
    let value = cursor.value()?;
    Ok(if value.is_null() {
        Some(0)
    } else {
        count(value)
    })
}

fn tool_calls(cursor: &mut Cursor<'_>, tools: &mut ToolCalls) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Array {
        return cursor.value().map(drop);
    }
    cursor.array(|cursor| {
        if cursor.shape()? != Shape::Object {
            return cursor.value().map(drop);
        }
        let (mut tool, mut calls) = (None, 0);
        cursor.object(|cursor, name| {
            let value = cursor.value()?;
            if name.is("type") {
                tool = value
                    .string()
                    .and_then(|word| Tool::of(&word.decode_lossy()));
            } else if name.is("count") {
                calls = tool::calls(value).unwrap_or(0);
            }
            Ok::<(), SyntaxError>(())
        })?;
        if let Some(tool) = tool {
            tools.add(tool, calls);
        }
        Ok::<(), SyntaxError>(())
    })
}

/// Reads a list of counts by modality, and returns those of images and of audio.
fn modalities(cursor: &mut Cursor<'_>, tokens: &str) -> Result<(u64, u64), SyntaxError> {
    let (mut images, mut sound) = (0_u64, 0_u64);
    if cursor.shape()? != Shape::Array {
        cursor.value()?;
        return Ok((images, sound));
    }
    cursor.array(|cursor| {
        if cursor.shape()? != Shape::Object {
            return cursor.value().map(drop);
        }
        let mut modality = Cow::Borrowed("");
        let mut found = 0;
        cursor.object(|cursor, name| {
            let value = cursor.value()?;
            if name.is("modality") {
                modality = value
                    .string()
                    .map_or(Cow::Borrowed(""), |text| text.decode_lossy());
            } else if name.is(tokens) {
                found = count(value).unwrap_or(0);
            }
            Ok::<(), SyntaxError>(())
        })?;
        if modality.eq_ignore_ascii_case("image") {
            images = images.saturating_add(found);
        } else if modality.eq_ignore_ascii_case("audio") {
            sound = sound.saturating_add(found);
        }
        Ok::<(), SyntaxError>(())
    })?;
    Ok((images, sound))
}

/// Writes a list of counts by modality, unless all are zero. `tokens` is the name of a count.
pub(crate) fn write_modalities(
    it: &mut Object<'_>,
    name: &str,
    tokens: &str,
    counts: [(&str, u64); 2],
) {
    if counts.iter().all(|(_, count)| *count == 0) {
        return;
    }
    it.array(name, |list| {
        for (modality, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            list.object(|item| {
                item.text("modality", modality).number(tokens, count);
            });
        }
    });
}

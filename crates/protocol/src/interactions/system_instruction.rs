//! Reads the system prompt of an Interactions request: a text, a content block, or an object or list
//! that holds content blocks.

use crate::failure::Failure;
use crate::json::patch::Edit;
use crate::json::typed;
use crate::json::{Cursor, Members, Raw, Shape, write_string};

pub(super) const NAME: &str = "system_instruction";

/// The depth is limited, because each level is read again. A list of objects that hold lists of content
/// blocks has this depth.
const LEVELS_MAX: usize = 4;

/// Appends the texts of a system prompt, except empty ones. Calls `unknown` with each member that has
/// no text.
pub(super) fn read(
    value: Raw<'_>,
    texts: &mut Vec<String>,
    unknown: &mut dyn FnMut(&str, Raw<'_>),
) -> Result<(), Failure> {
    read_level(value, LEVELS_MAX, texts, unknown)
}

/// Reads a value with at most this many more levels of lists and objects.
fn read_level(
    value: Raw<'_>,
    levels: usize,
    texts: &mut Vec<String>,
    unknown: &mut dyn FnMut(&str, Raw<'_>),
) -> Result<(), Failure> {
    if value.shape() == Shape::String {
        let text = value.string().map(|text| text.decode_lossy().into_owned());
        texts.extend(text.filter(|text| !text.is_empty()));
        return Ok(());
    }
    let Some(levels) = levels.checked_sub(1) else {
        let message = format!("`{NAME}` must not have more than {LEVELS_MAX} levels.");
        return Err(Failure::invalid(message).param(NAME));
    };
    let cursor = &mut Cursor::new(value.text());
    if value.shape() == Shape::Array {
        return typed::array(cursor, NAME, |cursor, _| {
            read_level(cursor.value()?, levels, texts, unknown)
        });
    }
    typed::object(cursor, NAME, |cursor, name| {
        let value = cursor.value()?;
        match name {
            "text" | "parts" | "content" => read_level(value, levels, texts, unknown),
            "type" | "role" => Ok(()),
            _ => {
                unknown(name, value);
                Ok(())
            }
        }
    })
}

/// Replaces a system prompt that is not a string by its texts, because upstreams take only a string.
/// A member that the string cannot hold, such as an image, is refused, because nothing would tell the
/// client that it was left out.
pub(super) fn write_as_string(members: &Members<'_>) -> Result<Option<Edit>, Failure> {
    let prompt = members.get(NAME)?;
    let Some(prompt) = prompt.filter(|prompt| prompt.shape() != Shape::String) else {
        return Ok(None);
    };
    let mut texts = Vec::new();
    let mut lost = None;
    read(prompt, &mut texts, &mut |name, value| {
        if !value.is_null() && !value.is_empty() {
            lost.get_or_insert_with(|| name.to_owned());
        }
    })?;
    if let Some(name) = lost {
        let message = format!("`{NAME}` must have only texts, and `{name}` is none.");
        return Err(Failure::invalid(message).param(NAME));
    }
    let mut text = Vec::new();
    write_string(&mut text, &texts.join("\n"));
    Ok(Some(Edit::replace(prompt.span(), text)))
}

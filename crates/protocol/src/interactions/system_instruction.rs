//! Reads the system prompt of an Interactions request: a text, a content block, or an object or list
//! that holds content blocks.

use crate::failure::Failure;
use crate::json::patch::Edit;
use crate::json::typed;
use crate::json::{Cursor, Members, Raw, Shape, write_string};

/// The name of the member that holds the system prompt.
pub(super) const NAME: &str = "system_instruction";

/// Appends the texts of a system prompt, except empty ones. Calls `unknown` with each member that has
/// no text.
pub(super) fn read(
    value: Raw<'_>,
    texts: &mut Vec<String>,
    unknown: &mut dyn FnMut(&str, Raw<'_>),
) -> Result<(), Failure> {
    match value.shape() {
        Shape::String => {
            let text = value.string().map(|text| text.decode_lossy().into_owned());
            texts.extend(text.filter(|text| !text.is_empty()));
            Ok(())
        }
        Shape::Array => typed::array(&mut Cursor::new(value.text()), NAME, |cursor, _| {
            read(cursor.value()?, texts, unknown)
        }),
        _ => typed::object(&mut Cursor::new(value.text()), NAME, |cursor, name| {
            let value = cursor.value()?;
            match name {
                "text" | "parts" | "content" => read(value, texts, unknown),
                "type" | "role" => Ok(()),
                _ => {
                    unknown(name, value);
                    Ok(())
                }
            }
        }),
    }
}

/// Replaces a system prompt that is not a string by its texts, because upstreams take only a string.
pub(super) fn write_as_string(members: &Members<'_>, edits: &mut Vec<Edit>) -> Result<(), Failure> {
    let prompt = members.get(NAME)?;
    let Some(prompt) = prompt.filter(|prompt| prompt.shape() != Shape::String) else {
        return Ok(());
    };
    let mut texts = Vec::new();
    read(prompt, &mut texts, &mut |_, _| {})?;
    let mut text = Vec::new();
    write_string(&mut text, &texts.join("\n"));
    let span = prompt.span();
    // Edits must not overlap.
    edits.retain(|edit| edit.span.end <= span.start || edit.span.start >= span.end);
    edits.push(Edit::replace(span, text));
    Ok(())
}

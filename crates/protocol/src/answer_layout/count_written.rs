//! Counts the text that a model wrote inside a JSON value, in the members with given names.

use crate::count::Counter;
use crate::json::{Cursor, Raw, Shape, SyntaxError};

/// Counts the text in all members with these names, at any depth. Returns whether there is any.
pub(crate) fn count_written(
    value: Raw<'_>,
    names: &[&str],
    counter: &mut Counter,
) -> Result<bool, SyntaxError> {
    let mut any = false;
    walk(&mut Cursor::new(value.text()), false, names, &mut |text| {
        any = true;
        counter.add_string(text.as_bytes());
    })?;
    Ok(any)
}

fn walk(
    cursor: &mut Cursor<'_>,
    written: bool,
    names: &[&str],
    note: &mut impl FnMut(&str),
) -> Result<(), SyntaxError> {
    match cursor.shape()? {
        Shape::Object => cursor.object(|cursor, name| {
            let written = names.iter().any(|known| name.is(known));
            walk(cursor, written, names, note)
        }),
        Shape::Array => cursor.array(|cursor| walk(cursor, written, names, note)),
        Shape::String if written => {
            let text = cursor.string()?;
            if !text.is_empty() {
                note(text.raw());
            }
            Ok(())
        }
        _ => cursor.value().map(drop),
    }
}

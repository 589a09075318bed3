//! Counts what a model wrote inside a JSON value: the texts of the members it writes in.

use crate::count::Counter;
use crate::json::{Cursor, Raw, Shape, SyntaxError};

/// Counts the members of these names at any depth. Says whether there was any text in them.
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

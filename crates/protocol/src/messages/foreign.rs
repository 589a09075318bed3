//! Takes thoughts of other vendors out of a history that goes on to this dialect's own.
//!
//! A conversation may change its model. What another vendor's model thought came to the caller as
//! thinking blocks whose signatures we wrapped; an upstream of this dialect would refuse them.

use crate::canon::Opaque;
use crate::json::patch::Edit;
use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::word::Word;

/// How every value that we wrapped begins, quote included.
static WRAPPED: Word = Word::new("\"Z3cxf");

/// The edits that take the thoughts out of `messages`; none, at no cost, in a history without.
pub(super) fn remove_thoughts(messages: Raw<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    if !WRAPPED.is_in(messages.text().as_bytes()) {
        return edits;
    }
    // The text has been checked before: what cannot be walked through holds nothing of ours.
    let _ = each_item(messages, |message| {
        if let Some(content) = member(message, "content")?
            && content.shape() == Shape::Array
        {
            edits.extend(without_thoughts(content)?);
        }
        Ok(())
    });
    edits
}

/// The edit of one message's content, if there is anything to take out.
fn without_thoughts(content: Raw<'_>) -> Result<Option<Edit>, SyntaxError> {
    let mut kept = vec![b'['];
    let mut found = false;
    each_item(content, |block| {
        if is_foreign(block)? {
            found = true;
            return Ok(());
        }
        if kept.len() > 1 {
            kept.push(b',');
        }
        kept.extend_from_slice(block.text().as_bytes());
        Ok(())
    })?;
    kept.push(b']');
    Ok(found.then(|| Edit::replace(content.span(), kept)))
}

fn is_foreign(block: Raw<'_>) -> Result<bool, SyntaxError> {
    let is_thinking = member(block, "type")?
        .and_then(|kind| kind.string())
        .is_some_and(|kind| kind.is("thinking"));
    if !is_thinking {
        return Ok(false);
    }
    let signature = member(block, "signature")?.and_then(|signature| signature.string());
    Ok(signature.is_some_and(|text| Opaque::unwrap(&text.decode_lossy()).is_some()))
}

/// A member of an object; nothing if it is none.
fn member<'a>(object: Raw<'a>, wanted: &str) -> Result<Option<Raw<'a>>, SyntaxError> {
    let mut found = None;
    if object.shape() == Shape::Object {
        Cursor::new(object.text()).object(|cursor, name| {
            let value = cursor.value()?;
            if name.is(wanted) {
                found = Some(value.moved(object.span().start));
            }
            Ok::<(), SyntaxError>(())
        })?;
    }
    Ok(found)
}

/// Steps through an array, with places counted as the array's own is.
fn each_item<'a>(
    array: Raw<'a>,
    mut item: impl FnMut(Raw<'a>) -> Result<(), SyntaxError>,
) -> Result<(), SyntaxError> {
    Cursor::new(array.text()).array(|cursor| item(cursor.value()?.moved(array.span().start)))
}

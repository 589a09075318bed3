//! Removes the thoughts of other vendors' models from requests to Messages upstreams.
//!
//! A conversation may change its model. Clients received the thoughts of another vendor's model as
//! thinking blocks with signatures that the gateway wrapped. A Messages upstream would refuse them.

use std::ops::Range;

use crate::canon::Opaque;
use crate::json::patch::{Edit, spans_to_remove};
use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::needle::Needle;

/// The start of a string that the gateway wrapped, with its opening quote.
static WRAPPED: Needle = Needle::new("\"Z3cxf");

/// The edits that remove the thoughts from `messages`. A message that would be empty is removed
/// too, because upstreams refuse it. A history without wrapped values costs one search.
pub(in crate::messages) fn remove_thoughts(messages: Raw<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    if !WRAPPED.is_in(messages.text().as_bytes()) {
        return edits;
    }
    let mut list = List::default();
    // The caller has validated the JSON. If `messages` is not a list, there is nothing to remove.
    let _ = each_item(messages, |message| {
        let blocks = match member(message, "content")? {
            Some(content) if content.shape() == Shape::Array => blocks(content)?,
            _ => List::default(),
        };
        let says_something = blocks.kept.is_empty() || blocks.kept.contains(&true);
        if says_something {
            edits.extend(blocks.edits());
        }
        list.push(message, says_something);
        Ok(())
    });
    edits.extend(list.edits());
    edits
}

/// The items of a list, and which of them are kept.
#[derive(Default)]
struct List {
    spans: Vec<Range<usize>>,
    kept: Vec<bool>,
}

impl List {
    fn push(&mut self, item: Raw<'_>, kept: bool) {
        self.spans.push(item.span());
        self.kept.push(kept);
    }

    fn edits(&self) -> impl Iterator<Item = Edit> {
        spans_to_remove(&self.spans, &self.kept)
            .into_iter()
            .map(Edit::remove)
    }
}

/// The blocks of one message's content.
fn blocks(content: Raw<'_>) -> Result<List, SyntaxError> {
    let mut list = List::default();
    each_item(content, |block| {
        list.push(block, !is_foreign(block)?);
        Ok(())
    })?;
    Ok(list)
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

/// A member of an object. `None` if the value is not an object.
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

/// Calls a function with each item. Spans count from the start of the array.
fn each_item<'a>(
    array: Raw<'a>,
    mut item: impl FnMut(Raw<'a>) -> Result<(), SyntaxError>,
) -> Result<(), SyntaxError> {
    Cursor::new(array.text()).array(|cursor| item(cursor.value()?.moved(array.span().start)))
}

//! Removes the thoughts of other vendors' models from requests to Messages upstreams.
//!
//! A conversation may change its model. Clients received the thoughts of another vendor's model as thinking
//! blocks. Their signatures were wrapped by the gateway, or are missing because the model gave none. A
//! Messages upstream would refuse these blocks.
//!
//! Some compatible engines never sign their thoughts, so an unsigned thought may be the upstream's own. These
//! engines need only the thoughts of their unfinished answer: the thoughts between tool calls, after the last
//! message of the user. So unsigned thoughts stay there if the request enables thinking. A vendor that checks
//! signatures refuses an unfinished answer with unsigned thoughts. It would also refuse that answer without
//! them, but it accepts later answers. If thinking is off, the vendor needs no thoughts and refuses unsigned
//! ones, so they are removed everywhere.

use std::ops::Range;

use crate::canon::Opaque;
use crate::json::patch::{Edit, spans_to_remove};
use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::needle::Needle;

/// The type of the blocks to look at, with its quotes. Escaped quotes inside a text do not match.
static THINKING: Needle = Needle::new("\"thinking\"");

/// The edits that remove the thoughts from `messages`. A message that would be empty is removed
/// too, because upstreams refuse it. A history without thoughts costs one search. `thinking` is the
/// member of the request with this name.
pub(in crate::messages) fn remove_thoughts(
    messages: Raw<'_>,
    thinking: Option<Raw<'_>>,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    if !THINKING.is_in(messages.text().as_bytes()) {
        return edits;
    }
    let mut list = List::default();
    let mut history = Vec::new();
    // The caller has validated the JSON. If `messages` is not a list, there is nothing to remove.
    let _ = each_item(messages, |message| {
        let [role, content] = members(message, ["role", "content"])?;
        let content = content.filter(|content| content.shape() == Shape::Array);
        history.push((message, role, content));
        Ok(())
    });
    let last_words = history.iter().rposition(|(_, role, content)| {
        is_text(*role, "user") && !content.is_some_and(has_results)
    });
    let is_enabled = thinking.is_some_and(is_enabled);
    for (at, (message, role, content)) in history.into_iter().enumerate() {
        let is_finished = last_words.is_some_and(|last| at < last);
        let removes_unsigned = (is_finished || !is_enabled) && is_text(role, "assistant");
        let blocks = content
            .and_then(|content| blocks(content, removes_unsigned).ok())
            .unwrap_or_default();
        let says_something = blocks.kept.is_empty() || blocks.kept.contains(&true);
        if says_something {
            edits.extend(blocks.edits());
        }
        list.push(message, says_something);
    }
    edits.extend(list.edits());
    edits
}

/// Whether `thinking` turns thinking on. Vendors add types, and only `disabled` turns thinking off.
fn is_enabled(thinking: Raw<'_>) -> bool {
    // The caller has validated the JSON.
    let kind = members(thinking, ["type"]).map_or(None, |[kind]| kind);
    kind.is_some_and(|kind| kind.string().is_some() && !is_text(Some(kind), "disabled"))
}

/// Whether a message answers calls of tools. Clients may add texts of their own, such as reminders.
fn has_results(content: Raw<'_>) -> bool {
    let mut any = false;
    // The caller has validated the JSON.
    let _ = each_item(content, |block| {
        let [kind] = members(block, ["type"])?;
        any |= is_text(kind, "tool_result");
        Ok(())
    });
    any
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
fn blocks(content: Raw<'_>, removes_unsigned: bool) -> Result<List, SyntaxError> {
    let mut list = List::default();
    each_item(content, |block| {
        let [kind, signature] = members(block, ["type", "signature"])?;
        let is_removed = is_text(kind, "thinking")
            && (is_foreign(signature) || removes_unsigned && is_missing(signature));
        list.push(block, !is_removed);
        Ok(())
    })?;
    Ok(list)
}

/// Whether the gateway wrapped the signature.
fn is_foreign(signature: Option<Raw<'_>>) -> bool {
    let text = signature.and_then(|signature| signature.string());
    text.is_some_and(|text| Opaque::unwrap(&text.decode_lossy()).is_some())
}

/// Whether there is no signature. A signature of a wrong type is passed on to the upstream.
fn is_missing(signature: Option<Raw<'_>>) -> bool {
    signature.is_none_or(|signature| signature.is_null() || is_text(Some(signature), ""))
}

fn is_text(value: Option<Raw<'_>>, wanted: &str) -> bool {
    let text = value.and_then(|value| value.string());
    text.is_some_and(|text| text.is(wanted))
}

/// The wanted members of an object. None are found if the value is not an object.
fn members<'a, const COUNT: usize>(
    object: Raw<'a>,
    wanted: [&str; COUNT],
) -> Result<[Option<Raw<'a>>; COUNT], SyntaxError> {
    let mut found = [None; COUNT];
    if object.shape() == Shape::Object {
        Cursor::new(object.text()).object(|cursor, name| {
            let value = cursor.value()?;
            for (found, wanted) in found.iter_mut().zip(wanted) {
                if name.is(wanted) {
                    *found = Some(value.moved(object.span().start));
                }
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

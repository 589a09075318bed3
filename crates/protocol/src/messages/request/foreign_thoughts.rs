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
use crate::json::patch::{Edit, ItemCutter};
use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::needle::Needle;

/// The type of the blocks to look at, with its quotes. Escaped quotes inside a text do not match.
static THINKING: Needle = Needle::new("\"thinking\"");

/// The edits that remove the thoughts from `messages`. A message that would be empty is removed
/// too, because upstreams refuse it. A history without thoughts costs one search. Items are not
/// collected, because a caller may send millions of them before its credits are looked up.
/// `thinking` is the member of the request with this name.
pub(in crate::messages) fn remove_thoughts(
    messages: Raw<'_>,
    thinking: Option<Raw<'_>>,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    if !THINKING.is_in(messages.text().as_bytes()) {
        return edits;
    }
    let last_words = last_words(messages);
    let is_enabled = thinking.is_some_and(is_enabled);
    let mut cutter = ItemCutter::default();
    let mut at = 0;
    each_item(messages, ["role", "content"], |message, [role, content]| {
        let is_finished = last_words.is_some_and(|last| at < last);
        at += 1;
        let removes_unsigned = (is_finished || !is_enabled) && is_text(role, "assistant");
        let says_something =
            content.is_none_or(|content| remove_blocks(content, removes_unsigned, &mut edits));
        cutter.item(message, says_something, &mut edits);
    });
    cutter.end(&mut edits);
    edits
}

/// The index of the last message of the user that answers no calls of tools.
fn last_words(messages: Raw<'_>) -> Option<usize> {
    let mut last = None;
    let mut at = 0;
    each_item(messages, ["role", "content"], |_, [role, content]| {
        if is_text(role, "user") && !content.is_some_and(has_results) {
            last = Some(at);
        }
        at += 1;
    });
    last
}

/// Whether `thinking` turns thinking on. Vendors add types, and only `disabled` turns thinking off.
fn is_enabled(thinking: Raw<'_>) -> bool {
    // The caller has validated the JSON.
    let kind = members(&mut Cursor::new(thinking.text()), ["type"]).map_or(None, |[kind]| kind);
    kind.is_some_and(|kind| kind.string().is_some() && !is_text(Some(kind), "disabled"))
}

/// Whether a message answers calls of tools. Clients may add texts of their own, such as reminders.
fn has_results(content: Raw<'_>) -> bool {
    let mut any = false;
    each_item(content, ["type"], |_, [kind]| {
        any |= is_text(kind, "tool_result");
    });
    any
}

/// Removes thoughts from one message's content. Returns whether anything is left of it. If not, there are no edits,
/// because the message itself is removed.
fn remove_blocks(content: Raw<'_>, removes_unsigned: bool, edits: &mut Vec<Edit>) -> bool {
    let earlier = edits.len();
    let mut cutter = ItemCutter::default();
    let mut is_emptied = false;
    let mut has_kept = false;
    each_item(
        content,
        ["type", "signature"],
        |block, [kind, signature]| {
            let is_removed = is_text(kind, "thinking")
                && (is_foreign(signature) || removes_unsigned && is_missing(signature));
            has_kept |= !is_removed;
            is_emptied = !has_kept;
            cutter.item(block, !is_removed, edits);
        },
    );
    cutter.end(edits);
    if is_emptied {
        edits.truncate(earlier);
    }
    !is_emptied
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

/// The wanted members of the value at the cursor. None are found if it is not an object.
fn members<'a, const COUNT: usize>(
    cursor: &mut Cursor<'a>,
    wanted: [&str; COUNT],
) -> Result<[Option<Raw<'a>>; COUNT], SyntaxError> {
    let mut found = [None; COUNT];
    if cursor.shape()? != Shape::Object {
        return cursor.value().map(|_| found);
    }
    cursor.object(|cursor, name| {
        let value = cursor.value()?;
        for (found, wanted) in found.iter_mut().zip(wanted) {
            if name.is(wanted) {
                *found = Some(value);
            }
        }
        Ok::<(), SyntaxError>(())
    })?;
    Ok(found)
}

/// Calls a function with the span and the wanted members of each item. Positions are those of the text of which `array`
/// is a part.
fn each_item<'a, const COUNT: usize>(
    array: Raw<'a>,
    wanted: [&str; COUNT],
    mut item: impl FnMut(Range<usize>, [Option<Raw<'a>>; COUNT]),
) {
    let offset = array.span().start;
    // The caller has validated the JSON. A value that is not a list has no items.
    let _ = Cursor::new(array.text()).array(|cursor| {
        cursor.shape()?;
        let start = cursor.position();
        let found = members(cursor, wanted)?;
        let span = offset + start..offset + cursor.position();
        item(
            span,
            found.map(|value| value.map(|value| value.moved(offset))),
        );
        Ok::<(), SyntaxError>(())
    });
}

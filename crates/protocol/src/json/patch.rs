//! Replaces spans of a text and leaves every other byte unchanged.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::scan::{Cursor, Shape};
use super::syntax::SyntaxError;
use super::text::Text;
use crate::byte_queue::{ByteQueue, COPY_BYTES_MAX};

/// One change: `text` replaces the bytes in `span`. An empty span inserts, and an empty text removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) span: Range<usize>,
    pub(crate) text: Cow<'static, [u8]>,
}

impl Edit {
    pub(crate) fn replace(span: Range<usize>, text: impl Into<Cow<'static, [u8]>>) -> Self {
        Self {
            span,
            text: text.into(),
        }
    }

    /// Inserts `text` before the byte at `at`.
    pub(crate) fn insert(at: usize, text: impl Into<Cow<'static, [u8]>>) -> Self {
        Self::replace(at..at, text)
    }

    pub(crate) fn remove(span: Range<usize>) -> Self {
        Self::replace(span, &b""[..])
    }
}

/// Drops edits inside a span that another edit replaces or removes. Edits must not overlap in any other way.
pub(crate) fn drop_inner_edits(edits: &mut Vec<Edit>) {
    edits.sort_by_key(|edit| (edit.span.start, Reverse(edit.span.end)));
    let mut end = 0;
    edits.retain(|edit| {
        let is_apart = edit.span.start >= end;
        if is_apart {
            end = edit.span.end;
        }
        is_apart
    });
}

/// Removes items of a list, with commas, so that only the others remain. Takes the items in their order and keeps
/// none of them, because a caller may send very many.
#[derive(Debug, Default)]
pub(crate) struct ItemCutter {
    /// The end of the last item that is kept.
    before: Option<usize>,
    /// The items to remove since then.
    gap: Option<Range<usize>>,
}

impl ItemCutter {
    pub(crate) fn item(&mut self, span: Range<usize>, is_kept: bool, edits: &mut Vec<Edit>) {
        let gap = self.gap.take();
        if !is_kept {
            self.gap = Some(gap.map_or(span.start, |gap| gap.start)..span.end);
            return;
        }
        if let Some(gap) = gap {
            edits.push(Edit::remove(gap.start..span.start));
        }
        self.before = Some(span.end);
    }

    pub(crate) fn end(self, edits: &mut Vec<Edit>) {
        if let Some(gap) = self.gap {
            edits.push(Edit::remove(self.before.unwrap_or(gap.start)..gap.end));
        }
    }
}

/// Removes the members that `cut` selects from an object, each with a comma. Members named in
/// `nested` are searched too, if they are objects or lists of objects.
pub(crate) fn cut_members(
    cursor: &mut Cursor<'_>,
    nested: &[&str],
    cut: fn(Text<'_>) -> bool,
    edits: &mut Vec<Edit>,
) -> Result<(), SyntaxError> {
    let mut before: Option<usize> = None;
    // A member is removed with the comma before it, or with the one after it if no member remains
    // before it.
    let mut first: Option<usize> = None;
    cursor.object(|cursor, name| {
        let start = name.span().start.saturating_sub(1);
        if let Some(first) = first.take() {
            edits.push(Edit::remove(first..start));
        }
        let is_nested = nested.iter().any(|nested| name.is(nested));
        match cursor.shape()? {
            Shape::Object if is_nested => cut_members(cursor, nested, cut, edits)?,
            Shape::Array if is_nested => cursor.array(|cursor| match cursor.shape()? {
                Shape::Object => cut_members(cursor, nested, cut, edits),
                _ => cursor.value().map(drop),
            })?,
            _ => drop(cursor.value()?),
        }
        let end = cursor.position();
        match before {
            _ if !cut(name) => before = Some(end),
            Some(before) => edits.push(Edit::remove(before..end)),
            None => first = Some(start),
        }
        if before.is_some() {
            before = Some(end);
        }
        Ok::<(), SyntaxError>(())
    })?;
    if let Some(first) = first {
        edits.push(Edit::remove(first..cursor.position().saturating_sub(1)));
    }
    Ok(())
}

/// The changed text as one buffer.
pub(crate) fn apply(body: &Bytes, edits: Vec<Edit>) -> Bytes {
    if edits.is_empty() {
        return body.clone();
    }
    let mut out = BytesMut::with_capacity(changed_length(body, &edits));
    each_piece(body.len(), edits, |piece| match piece {
        Segment::Old(span) => out.extend_from_slice(body.get(span).unwrap_or_default()),
        Segment::New(text) => out.extend_from_slice(&text),
    });
    out.freeze()
}

/// The changed text as several buffers. Large unchanged runs share the memory of `body`.
pub(crate) fn apply_to(body: &Bytes, edits: Vec<Edit>, out: &mut ByteQueue) {
    if body.len() <= COPY_BYTES_MAX {
        // All pieces are copied.
        out.reserve(changed_length(body, &edits));
    }
    each_piece(body.len(), edits, |piece| match piece {
        Segment::Old(span) => out.share(body, span),
        Segment::New(text) => out.copy(&text),
    });
}

/// The length of the changed text, or a little more.
fn changed_length(body: &[u8], edits: &[Edit]) -> usize {
    let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
    body.len().saturating_add(added)
}

enum Segment {
    Old(Range<usize>),
    New(Cow<'static, [u8]>),
}

/// Calls `piece` with each unchanged span and each replacement, in order. An edit that overlaps
/// an earlier one or is outside the text would be a bug. It is skipped, so that the text stays valid.
fn each_piece(length: usize, mut edits: Vec<Edit>, mut piece: impl FnMut(Segment)) {
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let mut done = 0;
    for edit in edits {
        let Range { start, end } = edit.span;
        let fits = done <= start && start <= end && end <= length;
        debug_assert!(fits, "edits are apart from one another and inside the text");
        if fits {
            piece(Segment::Old(done..start));
            piece(Segment::New(edit.text));
            done = end;
        }
    }
    piece(Segment::Old(done..length));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_are_replaced_inserted_and_removed() {
        let body = Bytes::from_static(b"{\"a\":1,\"b\":2}");
        let edits = vec![
            Edit::remove(7..12),
            Edit::replace(5..6, &b"[3]"[..]),
            Edit::insert(1, &b"\"c\":0,"[..]),
        ];
        assert_eq!(apply(&body, edits), &b"{\"c\":0,\"a\":[3],}"[..]);
        assert_eq!(apply(&body, Vec::new()), body);
    }

    #[test]
    fn an_edit_inside_another_one_is_dropped() {
        let body = Bytes::from_static(b"0123456789");
        let mut edits = vec![
            Edit::remove(3..4),
            Edit::remove(8..9),
            Edit::replace(5..6, &b"x"[..]),
            Edit::remove(2..5),
            Edit::remove(2..3),
            Edit::remove(7..9),
        ];
        drop_inner_edits(&mut edits);
        assert_eq!(apply(&body, edits), &b"01x69"[..]);
    }

    #[test]
    fn members_go_with_their_commas() {
        for (text, expected) in [
            (r#"{"a":1, "x":"X", "b":2}"#, r#"{"a":1, "b":2}"#),
            (r#"{"x":"X", "x":{"id":1},"b":2}"#, r#"{"b":2}"#),
            (r#"{"a":1,"x":"X","x":{}}"#, r#"{"a":1}"#),
            (r#"{"x":1}"#, "{}"),
            (r#"{"in":{"x":"X","b":{"x":1}}}"#, r#"{"in":{"b":{"x":1}}}"#),
            (
                r#"{"in":[{"a":1,"x":2},7,{"in":{"x":3}}]}"#,
                r#"{"in":[{"a":1},7,{"in":{}}]}"#,
            ),
        ] {
            let mut edits = Vec::new();
            let mut cursor = Cursor::new(text);
            cut_members(&mut cursor, &["in"], |name| name.is("x"), &mut edits).unwrap();
            let left = apply(&text.to_owned().into(), edits);
            assert_eq!(left, expected.as_bytes(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_items_that_are_kept_remain(kept in prop::collection::vec(any::<bool>(), 0..9)) {
            let mut text = "[".to_owned();
            let mut cutter = ItemCutter::default();
            let mut edits = Vec::new();
            for (at, is_kept) in kept.iter().enumerate() {
                text.push_str(if at == 0 { " " } else { " , " });
                let start = text.len();
                text.push_str(&at.to_string());
                cutter.item(start..text.len(), *is_kept, &mut edits);
            }
            cutter.end(&mut edits);
            text.push(']');
            let left = apply(&text.into(), edits);
            let left: Vec<usize> = serde_json::from_slice(&left).unwrap();
            let expected: Vec<usize> = (0..kept.len()).filter(|at| kept[*at]).collect();
            prop_assert_eq!(left, expected);
        }

        #[test]
        fn only_the_spans_change(
            body in prop::collection::vec(any::<u8>(), 0..20_000),
            cuts in prop::collection::btree_set(0_usize..20_000, 0..8),
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 4),
        ) {
            let cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= body.len()).collect();
            let edits: Vec<Edit> = cuts
                .chunks_exact(2)
                .zip(texts)
                .map(|(cut, text)| Edit::replace(cut[0]..cut[1], text))
                .collect();
            let mut expected = body.clone();
            for edit in edits.iter().rev() {
                expected.splice(edit.span.clone(), edit.text.iter().copied());
            }
            let body = Bytes::from(body);
            prop_assert_eq!(&apply(&body, edits.clone())[..], &expected[..]);
            let mut pieces = ByteQueue::new();
            apply_to(&body, edits, &mut pieces);
            prop_assert_eq!(pieces.len(), expected.len());
            prop_assert_eq!(&pieces.into_bytes()[..], &expected[..]);
        }
    }
}

//! Text that is written in one pass, although what stands in it depends on what follows.
//!
//! Later changes are noted and made together in the end. So each byte is copied once, however deep
//! the text is nested.

use std::ops::Range;

/// A text and the changes to make in it.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) text: Vec<u8>,
    changes: Vec<Change>,
}

#[derive(Debug)]
struct Change {
    at: usize,
    kind: ChangeKind,
}

#[derive(Debug)]
enum ChangeKind {
    Insert(&'static str),
    /// The text of another place is put here, with the changes inside it.
    Copy(Range<usize>),
    /// The text up to this position is left out.
    Skip(usize),
}

impl Draft {
    /// The number of changes so far.
    pub(super) fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Inserts a text at an earlier position, after what was inserted there before.
    pub(super) fn insert(&mut self, at: usize, text: &'static str) {
        self.change(at, ChangeKind::Insert(text));
    }

    /// Puts a span of the text at an earlier position. The span must be left out of its own place,
    /// and no change may begin with it except that one.
    pub(super) fn copy(&mut self, at: usize, span: Range<usize>) {
        self.change(at, ChangeKind::Copy(span));
    }

    /// Leaves a span of the text out.
    pub(super) fn skip(&mut self, span: Range<usize>) {
        self.change(span.start, ChangeKind::Skip(span.end));
    }

    fn change(&mut self, at: usize, kind: ChangeKind) {
        self.changes.push(Change { at, kind });
    }

    /// The changed text.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.changes.is_empty() {
            return self.text;
        }
        // The sort is stable, so changes at one position keep their order.
        self.changes.sort_by_key(|change| change.at);
        let mut out = Vec::with_capacity(self.text.len());
        self.write(0..self.text.len(), 0, &mut out);
        out
    }

    /// Writes a span with the changes inside it, of which `next` is the first.
    fn write(&self, span: Range<usize>, mut next: usize, out: &mut Vec<u8>) {
        let mut done = span.start;
        while let Some(change) = self.changes.get(next)
            && change.at < span.end
        {
            out.extend_from_slice(self.text.get(done..change.at).unwrap_or_default());
            done = change.at;
            next += 1;
            match &change.kind {
                ChangeKind::Insert(text) => out.extend_from_slice(text.as_bytes()),
                ChangeKind::Copy(span) => {
                    let inside = self.first_change(span.start.saturating_add(1));
                    self.write(span.clone(), inside, out);
                }
                ChangeKind::Skip(end) => {
                    done = *end;
                    next = next.max(self.first_change(done));
                }
            }
        }
        out.extend_from_slice(self.text.get(done..span.end).unwrap_or_default());
    }

    /// The index of the first change at or after a position.
    fn first_change(&self, at: usize) -> usize {
        self.changes.partition_point(|change| change.at < at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_made_in_one_pass() {
        let mut draft = Draft {
            text: b"{aa,bb,cc,dd}".to_vec(),
            changes: Vec::new(),
        };
        draft.insert(8, "<");
        draft.insert(9, ">");
        draft.copy(1, 4..6);
        draft.insert(1, ",");
        draft.copy(1, 7..9);
        draft.insert(1, ";");
        draft.skip(3..6);
        draft.skip(6..9);
        draft.insert(12, "!");
        assert_eq!(draft.changes(), 9);
        assert_eq!(draft.finish(), b"{bb,c<c;aa>,dd!}");
    }
}

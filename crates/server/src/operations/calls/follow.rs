//! Follows the journal: selects the rows that were not shown before.

use std::collections::BTreeSet;
use std::time::Duration;

use store::{JournalCursor, JournalEntry};

/// How late another node may write a row so that lookups still find the row.
pub(crate) const LATE_MAX: Duration = Duration::from_secs(10);

/// The positions of recently shown rows. They are needed because another node may write a row late, at an earlier
/// position.
#[derive(Debug, Default)]
pub(crate) struct ShownRows(BTreeSet<JournalCursor>);

impl ShownRows {
    /// The position after which new rows may still appear, at which the next lookup starts.
    pub(crate) fn look_after(&self) -> Option<JournalCursor> {
        self.0.last().map(|position| position.earlier(LATE_MAX))
    }

    /// The newest position that was shown.
    pub(crate) fn newest(&self) -> Option<JournalCursor> {
        self.0.last().copied()
    }

    /// Returns the rows that were not shown before, and records them as shown.
    pub(crate) fn keep_new(&mut self, mut rows: Vec<JournalEntry>) -> Vec<JournalEntry> {
        rows.retain(|entry| self.0.insert(entry.cursor));
        if let Some(position) = self.look_after() {
            self.0 = self.0.split_off(&position);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use store::JournalRow;

    use super::*;

    #[test]
    fn a_late_row_is_shown_and_none_twice() {
        let second = 1_000 << 20;
        let rows = |positions: &[i64]| -> Vec<JournalEntry> {
            let entry = |position: &i64| JournalEntry {
                cursor: JournalCursor::new(*position),
                row: JournalRow::default(),
            };
            positions.iter().map(entry).collect()
        };
        let mut shown = ShownRows::default();
        assert_eq!(shown.look_after(), None);
        for (come, new) in [
            (
                vec![100 * second, 105 * second],
                vec![100 * second, 105 * second],
            ),
            (
                vec![100 * second, 101 * second, 105 * second],
                vec![101 * second],
            ),
            (vec![105 * second, 120 * second], vec![120 * second]),
        ] {
            assert_eq!(shown.keep_new(rows(&come)), rows(&new));
        }
        let after = JournalCursor::new(110 * second);
        assert_eq!(shown.look_after(), Some(after));
        assert_eq!(shown.0.len(), 1, "the others are too old to come again");
    }
}

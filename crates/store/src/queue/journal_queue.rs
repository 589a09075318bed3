//! A queue of journal rows to write, limited in number and bytes.

use crate::records::journal::{JournalRow, sort_late_charges};

/// Limits of the queue, including the rows that are being written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalBounds {
    pub(crate) rows_max: usize,
    /// The size of the rows' texts, most of which are bodies.
    pub(crate) bytes_max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queued {
    Whole,
    /// The row was queued without its bodies, because there was no room for them.
    WithoutBodies,
    Dropped,
}

/// The queue of the journal's writer. When it is nearly full, bodies are dropped first: a row without them still
/// records a charge.
#[derive(Debug, Default)]
pub(crate) struct JournalQueue {
    rows: Vec<JournalRow>,
    has_late_charges: bool,
    waiting_bytes: usize,
    /// Rows that the writer has taken and not yet written.
    writing_rows: usize,
    writing_bytes: usize,
}

impl JournalQueue {
    /// Moves the row out of its box, so that the thread that has allocated the box also frees it
    /// (`docs/decisions/021`).
    pub(crate) fn push(&mut self, mut row: Box<JournalRow>, bounds: JournalBounds) -> Queued {
        if self.held() >= bounds.rows_max {
            return Queued::Dropped;
        }
        let held_bytes = self.waiting_bytes.saturating_add(self.writing_bytes);
        let room = bounds.bytes_max.saturating_sub(held_bytes);
        let mut queued = Queued::Whole;
        let mut bytes = bytes_of(&row);
        if bytes > room && (row.request_body.is_some() || row.response_body.is_some()) {
            row.request_body = None;
            row.response_body = None;
            queued = Queued::WithoutBodies;
            bytes = bytes_of(&row);
        }
        if bytes > room {
            return Queued::Dropped;
        }
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        self.has_late_charges |= row.is_late_charge;
        self.rows.push(*row);
        queued
    }

    /// Moves all rows to the writer, in exchange for its empty list. Late charges come last.
    pub(crate) fn take(&mut self, empty: &mut Vec<JournalRow>) {
        std::mem::swap(&mut self.rows, empty);
        if std::mem::take(&mut self.has_late_charges) {
            sort_late_charges(empty);
        }
        self.writing_rows = empty.len();
        self.writing_bytes = std::mem::take(&mut self.waiting_bytes);
    }

    /// Called when the writer has written and freed the rows that it took.
    pub(crate) fn written(&mut self) {
        self.writing_rows = 0;
        self.writing_bytes = 0;
    }

    /// The number of rows that wait or are being written.
    pub(crate) fn held(&self) -> usize {
        self.rows.len() + self.writing_rows
    }

    /// The number of rows that wait.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// The size of the texts that only this row owns.
fn bytes_of(row: &JournalRow) -> usize {
    let texts = [
        &row.dropped_params,
        &row.route_notes,
        &row.request_body,
        &row.response_body,
    ];
    texts.into_iter().flatten().map(|text| text.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: JournalBounds = JournalBounds {
        rows_max: 4,
        bytes_max: 1_000,
    };

    fn row(body_bytes: usize) -> Box<JournalRow> {
        Box::new(JournalRow {
            request_body: Some("b".repeat(body_bytes).into()),
            route_notes: Some("0123456789".into()),
            ..JournalRow::default()
        })
    }

    #[test]
    fn bodies_beyond_the_bound_are_left_out_and_their_rows_are_kept() {
        let mut queue = JournalQueue::default();
        assert_eq!(queue.push(row(600), BOUNDS), Queued::Whole);
        assert_eq!(queue.push(row(600), BOUNDS), Queued::WithoutBodies);
        assert_eq!(queue.push(row(300), BOUNDS), Queued::Whole);
        let mut rows = Vec::new();
        queue.take(&mut rows);
        let bodies: Vec<_> = rows.iter().map(|row| row.request_body.is_some()).collect();
        assert_eq!(bodies, [true, false, true]);
    }

    #[test]
    fn rows_that_are_being_written_count() {
        let mut queue = JournalQueue::default();
        let mut rows = Vec::new();
        assert_eq!(queue.push(row(900), BOUNDS), Queued::Whole);
        queue.take(&mut rows);
        assert_eq!(queue.push(row(200), BOUNDS), Queued::WithoutBodies);
        assert_eq!((queue.len(), queue.held()), (1, 2));
        queue.written();
        assert_eq!(queue.push(row(900), BOUNDS), Queued::Whole);
    }

    #[test]
    fn a_row_that_is_too_large_without_bodies_is_dropped() {
        let mut queue = JournalQueue::default();
        let huge = JournalRow {
            route_notes: Some("n".repeat(2_000).into()),
            ..*row(1)
        };
        assert_eq!(queue.push(Box::new(huge), BOUNDS), Queued::Dropped);
        for _ in 0..BOUNDS.rows_max {
            assert_eq!(queue.push(row(0), BOUNDS), Queued::Whole);
        }
        assert_eq!(queue.push(row(0), BOUNDS), Queued::Dropped);
        assert_eq!(queue.len(), BOUNDS.rows_max);
    }
}

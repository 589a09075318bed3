//! The time limit for one page of a search in the journal.

use std::time::{Duration, Instant};

/// After this time, a page with rows is returned even if it is not full.
const PAGE_TIME: Duration = Duration::from_millis(50);
/// A page without rows is returned only after this time. Clients would request the next page at once, which costs more
/// than continuing the search.
const EMPTY_PAGE_TIME: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
pub(crate) struct PageTime(Instant);

impl PageTime {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Whether a page with `rows` rows should be returned now.
    pub(crate) fn is_over(self, rows: usize) -> bool {
        is_over(self.0.elapsed(), rows)
    }
}

fn is_over(elapsed: Duration, rows: usize) -> bool {
    elapsed >= if rows > 0 { PAGE_TIME } else { EMPTY_PAGE_TIME }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_page_is_answered_late() {
        for (ms, rows, over) in [
            (0, 0, false),
            (49, 1, false),
            (50, 1, true),
            (50, 0, false),
            (999, 0, false),
            (1_000, 0, true),
        ] {
            assert_eq!(
                is_over(Duration::from_millis(ms), rows),
                over,
                "{ms} {rows}"
            );
        }
    }
}

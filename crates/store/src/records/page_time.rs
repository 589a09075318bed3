//! How long a search of the journal looks for a page.

use std::time::{Duration, Instant};

/// A page with rows is answered after this time, as it is.
const PAGE_TIME: Duration = Duration::from_millis(50);
/// A page without rows only after this. Clients would ask on at once, which costs more than to look on.
const EMPTY_PAGE_TIME: Duration = Duration::from_secs(1);

/// The time of one page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageTime(Instant);

impl PageTime {
    /// Starts now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Whether a page with so many rows is answered as it is.
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

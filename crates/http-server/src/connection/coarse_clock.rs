//! A clock whose reading costs one atomic load.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Milliseconds since the listener started, advanced once per sweep. The value is never zero, so that zero can stand
/// for "not waiting".
#[derive(Debug)]
pub(crate) struct CoarseClock {
    start: Instant,
    now_ms: AtomicU64,
}

impl CoarseClock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            now_ms: AtomicU64::new(1),
        }
    }

    pub(crate) fn advance(&self) {
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        self.now_ms.store(elapsed, Ordering::Relaxed);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    /// Whether a wait that began at `since_ms` has lasted longer than `limit`. A `since_ms` of zero means that nothing
    /// waits.
    pub(crate) fn is_past(&self, since_ms: u64, limit: Duration) -> bool {
        let lasted = self.now_ms().saturating_sub(since_ms);
        since_ms != 0 && u128::from(lasted) > limit.as_millis()
    }

    #[cfg(test)]
    pub(super) fn set_seconds(&self, seconds: u64) {
        self.now_ms.store(seconds * 1000 + 1, Ordering::Relaxed);
    }
}

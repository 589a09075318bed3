//! The health of a channel: its breaker and its history, shared by calls on many threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::breaker::{Breaker, BreakerState, CallOutcome};
use crate::history::{History, MinuteOfCalls};

/// The breaker is nearly always closed. Checking a closed breaker loads one flag from a cache line
/// that is rarely written. It takes no lock and does not read the clock.
#[derive(Debug, Default)]
pub(crate) struct Health {
    is_open: AtomicBool,
    breaker: CacheAligned<Mutex<Watched>>,
}

/// The breaker and the history, which every call updates when it ends.
#[derive(Debug, Default)]
struct Watched {
    breaker: Breaker,
    history: History,
}

/// Puts the value on its own cache lines, because every call writes to it when it ends.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CacheAligned<T>(T);

impl Health {
    pub(crate) fn state(&self, now: impl FnOnce() -> Instant) -> BreakerState {
        if !self.is_open.load(Ordering::Relaxed) {
            return BreakerState::Closed;
        }
        self.breaker.0.lock().breaker.state(now())
    }

    pub(crate) fn credential_retry_in(&self, now: Instant) -> Option<Duration> {
        self.breaker.0.lock().breaker.credential_retry_in(now)
    }

    pub(crate) fn history(&self, now: Instant) -> [MinuteOfCalls; 60] {
        self.breaker.0.lock().history.read(now)
    }

    pub(crate) fn attempt(&self, now: Instant) {
        if self.is_open.load(Ordering::Relaxed) {
            self.breaker.0.lock().breaker.attempt(now);
        }
    }

    pub(crate) fn report(&self, outcome: CallOutcome, now: Instant) {
        let mut watched = self.breaker.0.lock();
        watched.history.count(outcome, now);
        watched.breaker.report(outcome, now);
        let is_open = watched.breaker.is_open();
        if is_open != self.is_open.load(Ordering::Relaxed) {
            self.is_open.store(is_open, Ordering::Relaxed);
        }
    }
}

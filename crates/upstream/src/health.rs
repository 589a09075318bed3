//! A channel's health, for calls on many threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::breaker::{Breaker, BreakerState, CallOutcome};

/// A breaker that is nearly always closed. Who only asks reads that from memory which nobody writes to
/// then, and neither takes a lock that all cores want nor looks at the clock.
#[derive(Debug, Default)]
pub(crate) struct Health {
    troubled: AtomicBool,
    breaker: CacheAligned<Mutex<Breaker>>,
}

/// On lines of memory of its own: every call writes to it when it ends.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CacheAligned<T>(T);

impl Health {
    /// How the channel stands.
    pub(crate) fn state(&self, now: impl FnOnce() -> Instant) -> BreakerState {
        if !self.troubled.load(Ordering::Relaxed) {
            return BreakerState::Closed;
        }
        self.breaker.0.lock().state(now())
    }

    /// How long the channel stays out for its refused credential.
    pub(crate) fn credential_retry_in(&self, now: Instant) -> Option<Duration> {
        self.breaker.0.lock().credential_retry_in(now)
    }

    /// A call goes out at `now`.
    pub(crate) fn attempt(&self, now: Instant) {
        if self.troubled.load(Ordering::Relaxed) {
            self.breaker.0.lock().attempt(now);
        }
    }

    /// A call ended at `now`.
    pub(crate) fn report(&self, outcome: CallOutcome, now: Instant) {
        let mut breaker = self.breaker.0.lock();
        breaker.report(outcome, now);
        let troubled = breaker.is_troubled();
        if troubled != self.troubled.load(Ordering::Relaxed) {
            self.troubled.store(troubled, Ordering::Relaxed);
        }
    }
}

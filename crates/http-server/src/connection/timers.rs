//! Measures how long a connection has been waiting for its client.
//!
//! A timer for each request would cost more than parsing the request. Instead, each connection records when its phase
//! began, as the time of a coarse clock. One sweep per second closes the connections that have waited too long: for a
//! silent client, for the rest of a head, or for a client that reads nothing of its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::coarse_clock::CoarseClock;

/// The maximum duration of each kind of wait.
#[derive(Debug, Clone, Copy)]
pub struct WaitLimits {
    /// From the first byte of a request head to its last. The time for the first head begins when the connection is
    /// accepted.
    pub head: Duration,
    /// Between two requests of one connection.
    pub keep_alive: Duration,
    /// While data of an answer waits and the client reads none of it.
    pub write: Duration,
}

/// When the waits of one connection began, in milliseconds of the coarse clock.
#[derive(Debug)]
pub(crate) struct ConnectionTimers {
    clock: Arc<CoarseClock>,
    /// On an idle HTTP/2 connection a byte may belong to a ping or to settings, so it does not start the timer of a
    /// head. The limit between requests also covers a head that never ends.
    is_http2: AtomicBool,
    /// Requests being served on this connection.
    serving: AtomicU32,
    /// When the current head began; zero between heads.
    head_since: AtomicU64,
    idle_since: AtomicU64,
    /// When the socket stopped accepting writes; zero while it accepts them.
    blocked_since: AtomicU64,
}

impl ConnectionTimers {
    /// The timers of a new connection, which must send its first head at once.
    pub(crate) fn new(clock: Arc<CoarseClock>) -> Self {
        let now = clock.now_ms();
        Self {
            clock,
            is_http2: AtomicBool::new(false),
            serving: AtomicU32::new(0),
            head_since: AtomicU64::new(now),
            idle_since: AtomicU64::new(now),
            blocked_since: AtomicU64::new(0),
        }
    }

    /// Call this when a request head is complete, and keep the guard until its answer has ended.
    pub(crate) fn begin_request(self: &Arc<Self>) -> ServingGuard {
        self.serving.fetch_add(1, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
        ServingGuard(Arc::clone(self))
    }

    pub(super) fn set_http2(&self) {
        self.is_http2.store(true, Ordering::Relaxed);
    }

    pub(super) fn bytes_read(&self) {
        let is_idle = self.serving.load(Ordering::Relaxed) == 0
            && self.head_since.load(Ordering::Relaxed) == 0;
        if is_idle && !self.is_http2.load(Ordering::Relaxed) {
            self.head_since
                .store(self.clock.now_ms(), Ordering::Relaxed);
        }
    }

    pub(super) fn write_blocked(&self) {
        let now = self.clock.now_ms();
        let _ = self
            .blocked_since
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(super) fn bytes_written(&self) {
        if self.blocked_since.load(Ordering::Relaxed) != 0 {
            self.blocked_since.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_overdue(&self, limits: &WaitLimits) -> bool {
        let waited = |since: &AtomicU64, limit: Duration| {
            self.clock.is_past(since.load(Ordering::Relaxed), limit)
        };
        if waited(&self.blocked_since, limits.write) {
            return true;
        }
        if self.serving.load(Ordering::Relaxed) > 0 {
            return false;
        }
        waited(&self.head_since, limits.head) || waited(&self.idle_since, limits.keep_alive)
    }
}

/// A request that is being served. Dropping the guard tells the timers that its answer has ended.
#[derive(Debug)]
pub(crate) struct ServingGuard(Arc<ConnectionTimers>);

impl Drop for ServingGuard {
    fn drop(&mut self) {
        self.0
            .idle_since
            .store(self.0.clock.now_ms(), Ordering::Relaxed);
        self.0.serving.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WaitLimits = WaitLimits {
        head: Duration::from_secs(10),
        keep_alive: Duration::from_secs(75),
        write: Duration::from_secs(60),
    };

    #[test]
    fn a_silent_connection_owes_its_first_head_in_ten_seconds() {
        let clock = Arc::new(CoarseClock::new());
        let timers = Arc::new(ConnectionTimers::new(Arc::clone(&clock)));
        clock.set_seconds(10);
        assert!(!timers.is_overdue(&LIMITS));
        clock.set_seconds(11);
        assert!(timers.is_overdue(&LIMITS));
    }

    #[test]
    fn a_served_request_may_take_long_and_keep_alive_starts_after_it() {
        let clock = Arc::new(CoarseClock::new());
        let timers = Arc::new(ConnectionTimers::new(Arc::clone(&clock)));
        let serving = timers.begin_request();
        clock.set_seconds(1000);
        assert!(!timers.is_overdue(&LIMITS));
        drop(serving);
        clock.set_seconds(1075);
        assert!(!timers.is_overdue(&LIMITS));
        clock.set_seconds(1076);
        assert!(timers.is_overdue(&LIMITS));
    }

    #[test]
    fn the_next_head_is_timed_from_its_first_byte() {
        let clock = Arc::new(CoarseClock::new());
        let timers = Arc::new(ConnectionTimers::new(Arc::clone(&clock)));
        drop(timers.begin_request());
        clock.set_seconds(50);
        timers.bytes_read();
        clock.set_seconds(60);
        timers.bytes_read();
        assert!(!timers.is_overdue(&LIMITS));
        clock.set_seconds(61);
        assert!(
            timers.is_overdue(&LIMITS),
            "a further byte must not extend the time"
        );
    }

    #[test]
    fn pings_of_an_idle_http2_connection_are_no_heads() {
        let clock = Arc::new(CoarseClock::new());
        let timers = Arc::new(ConnectionTimers::new(Arc::clone(&clock)));
        timers.set_http2();
        timers.bytes_read();
        clock.set_seconds(11);
        assert!(timers.is_overdue(&LIMITS), "the first head is owed at once");
        drop(timers.begin_request());
        clock.set_seconds(20);
        timers.bytes_read();
        clock.set_seconds(80);
        assert!(!timers.is_overdue(&LIMITS));
        clock.set_seconds(87);
        assert!(
            timers.is_overdue(&LIMITS),
            "a ping must not extend the time between requests"
        );
    }

    #[test]
    fn a_reader_that_takes_nothing_is_overdue_while_served() {
        let clock = Arc::new(CoarseClock::new());
        let timers = Arc::new(ConnectionTimers::new(Arc::clone(&clock)));
        let _serving = timers.begin_request();
        timers.write_blocked();
        clock.set_seconds(30);
        timers.bytes_written();
        timers.write_blocked();
        clock.set_seconds(90);
        timers.write_blocked();
        assert!(!timers.is_overdue(&LIMITS));
        clock.set_seconds(91);
        assert!(timers.is_overdue(&LIMITS));
    }
}

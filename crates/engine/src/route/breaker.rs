//! Takes a route out of use while its upstream rate-limits it. The other routes of its channel stay in use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use upstream::{Breaker, BreakerState, CallOutcome};

/// The breaker of one route. Only rate limits of the upstream open it; other failures count for the channel's breaker.
///
/// While no rate limit is remembered, a call only loads a flag. It takes no lock and does not read the clock.
#[derive(Debug, Default)]
pub(crate) struct RouteBreaker {
    is_noticed: AtomicBool,
    breaker: Mutex<Breaker>,
}

impl RouteBreaker {
    pub(crate) fn state(&self, now: impl FnOnce() -> Instant) -> BreakerState {
        if !self.is_noticed.load(Ordering::Relaxed) {
            return BreakerState::Closed;
        }
        self.breaker.lock().state(now())
    }

    pub(crate) fn attempt(&self, now: impl FnOnce() -> Instant) {
        if self.is_noticed.load(Ordering::Relaxed) {
            self.breaker.lock().attempt(now());
        }
    }

    pub(crate) fn report(&self, outcome: CallOutcome, now: impl FnOnce() -> Instant) {
        let learnt = match outcome {
            CallOutcome::RateLimited { retry_after } => CallOutcome::Overloaded { retry_after },
            _ if !self.is_noticed.load(Ordering::Relaxed) => return,
            CallOutcome::Served => CallOutcome::Served,
            // These outcomes say nothing about a rate limit. A probe that ends like this allows another probe.
            CallOutcome::Failed
            | CallOutcome::Overloaded { .. }
            | CallOutcome::CredentialRefused
            | CallOutcome::Unknown => CallOutcome::Unknown,
        };
        let mut breaker = self.breaker.lock();
        breaker.report(learnt, now());
        self.is_noticed
            .store(!breaker.has_no_failures(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_limited_route_rests_as_long_as_its_upstream_asks() {
        let breaker = RouteBreaker::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let limited = CallOutcome::RateLimited {
            retry_after: Some(Duration::from_secs(20)),
        };
        breaker.report(limited, || start);
        let resting = BreakerState::Open { since: start };
        assert_eq!(breaker.state(|| at(19)), resting);
        assert_eq!(breaker.state(|| at(20)), BreakerState::Probe);
        // One call probes the route. A failure for another reason says nothing about the rate limit.
        breaker.attempt(|| at(20));
        assert_eq!(breaker.state(|| at(20)), resting);
        breaker.report(CallOutcome::Failed, || at(21));
        assert_eq!(breaker.state(|| at(21)), BreakerState::Probe);
        breaker.attempt(|| at(22));
        breaker.report(CallOutcome::Served, || at(23));
        assert_eq!(breaker.state(|| at(23)), BreakerState::Closed);
        assert!(!breaker.is_noticed.load(Ordering::Relaxed));
    }

    #[test]
    fn nothing_but_limits_rests_a_route() {
        let breaker = RouteBreaker::default();
        let start = Instant::now();
        let overloaded = CallOutcome::Overloaded { retry_after: None };
        for outcome in [
            CallOutcome::Failed,
            CallOutcome::CredentialRefused,
            overloaded,
        ] {
            for _ in 0..30 {
                breaker.report(outcome, || panic!("the clock is not read"));
            }
            assert_eq!(breaker.state(|| start), BreakerState::Closed);
        }
        // Rate limits without a `retry-after` count like failures.
        let limited = CallOutcome::RateLimited { retry_after: None };
        for _ in 0..4 {
            breaker.report(limited, || start);
        }
        breaker.report(CallOutcome::Served, || start);
        for _ in 0..4 {
            breaker.report(limited, || start);
            assert_eq!(breaker.state(|| start), BreakerState::Closed);
        }
        breaker.report(limited, || start);
        assert_eq!(breaker.state(|| start), BreakerState::Open { since: start });
    }
}

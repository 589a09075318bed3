//! Limits the requests and tokens of a route per minute on this node.

use ledger::{Bucket, UnixMs, Wait};
use parking_lot::Mutex;

/// The configured limits of a route. Each node counts separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouteLimits {
    /// The maximum number of requests per minute.
    pub rpm: Option<u32>,
    /// The maximum number of tokens per minute. A call takes its estimate, which is corrected when the call is settled.
    pub tpm: Option<u32>,
}

impl RouteLimits {
    /// Whether there is a limit.
    pub fn is_limited(self) -> bool {
        self.rpm.is_some() || self.tpm.is_some()
    }
}

#[derive(Debug, Default)]
pub(crate) struct RouteUsage(Mutex<Buckets>);

#[derive(Debug, Clone, Copy, Default)]
struct Buckets {
    requests: Bucket,
    tokens: Bucket,
}

/// The limit that a route has reached, and the wait until it has capacity again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimitReached {
    /// The name of the limit.
    pub(crate) what: &'static str,
    pub(crate) wait: Wait,
}

impl RouteUsage {
    /// Takes one request and these tokens, all or nothing.
    pub(crate) fn take(
        &self,
        tokens: u64,
        limits: RouteLimits,
        now: UnixMs,
    ) -> Result<(), LimitReached> {
        let reached = |what| move |wait| LimitReached { what, wait };
        let mut buckets = self.0.lock();
        let mut after = *buckets;
        if let Some(rpm) = limits.rpm {
            let taken = after.requests.take(1, rpm, now);
            taken.map_err(reached("requests per minute"))?;
        }
        if let Some(tpm) = limits.tpm {
            let taken = after.tokens.take(tokens, tpm, now);
            taken.map_err(reached("tokens per minute"))?;
        }
        *buckets = after;
        Ok(())
    }

    /// Returns a request that was not made.
    pub(crate) fn give_back_request(&self, limits: RouteLimits, now: UnixMs) {
        if let Some(rpm) = limits.rpm {
            self.0.lock().requests.give_back(1, rpm, now);
        }
    }

    pub(crate) fn correct_tokens(
        &self,
        estimated: u64,
        actual: u64,
        limits: RouteLimits,
        now: UnixMs,
    ) {
        if let Some(tpm) = limits.tpm {
            let tokens = &mut self.0.lock().tokens;
            tokens.correct(estimated, actual, tpm, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOON: UnixMs = UnixMs::new(1_700_000_000_000);

    #[test]
    fn the_first_limit_that_is_reached_decides_and_nothing_is_taken() {
        let usage = RouteUsage::default();
        let limits = RouteLimits {
            rpm: Some(2),
            tpm: Some(100),
        };
        assert_eq!(usage.take(60, limits, NOON), Ok(()));
        let tokens = LimitReached {
            what: "tokens per minute",
            wait: Wait::Ms(12_000),
        };
        // A refusal does not take a request.
        for _ in 0..3 {
            assert_eq!(usage.take(60, limits, NOON), Err(tokens));
        }
        assert_eq!(usage.take(40, limits, NOON), Ok(()));
        let requests = LimitReached {
            what: "requests per minute",
            wait: Wait::Ms(30_000),
        };
        assert_eq!(usage.take(0, limits, NOON), Err(requests));
        usage.give_back_request(limits, NOON);
        usage.correct_tokens(40, 10, limits, NOON);
        assert_eq!(usage.take(30, limits, NOON), Ok(()));
        let never = LimitReached {
            what: "tokens per minute",
            wait: Wait::Never,
        };
        assert_eq!(usage.take(101, limits, NOON.plus_ms(60_000)), Err(never));
    }

    proptest! {
        /// At most twice the limits pass within any minute, and a request that waits for the reported time passes.
        #[test]
        fn a_route_takes_no_more_than_its_limits(
            rpm in 1_u32..20,
            tpm in 10_u32..2_000,
            calls in prop::collection::vec((0_i64..5_000, 0_u64..300), 1..150),
        ) {
            let usage = RouteUsage::default();
            let limits = RouteLimits { rpm: Some(rpm), tpm: Some(tpm) };
            let mut now = NOON;
            let mut passed: Vec<(i64, u64)> = Vec::new();
            for (pause_ms, tokens) in calls {
                now = now.plus_ms(pause_ms);
                match usage.take(tokens, limits, now) {
                    Ok(()) => passed.push((now.get(), tokens)),
                    Err(LimitReached { wait: Wait::Never, .. }) => prop_assert!(tokens > u64::from(tpm)),
                    Err(LimitReached { wait: Wait::Ms(ms), what }) => {
                        // No other request comes in between, so only the other limit can refuse this one.
                        let later = now.plus_ms(i64::try_from(ms).unwrap());
                        let again = RouteUsage(Mutex::new(*usage.0.lock())).take(tokens, limits, later);
                        prop_assert!(again.is_ok() || again.is_err_and(|it| it.what != what));
                    }
                }
            }
            // A bucket of N admits a burst of N and then N per minute, so at most 2 N in any minute.
            for (at, _) in &passed {
                let minute = passed.iter().filter(|(then, _)| (*at..at + 60_000).contains(then));
                let (count, sum) = minute.fold((0_u64, 0_u64), |(count, sum), (_, it)| (count + 1, sum + it));
                prop_assert!(count <= 2 * u64::from(rpm));
                prop_assert!(sum <= 2 * u64::from(tpm));
            }
        }
    }
}

//! A token bucket whose whole state is one timestamp.
//!
//! A bucket of N holds N tokens and is refilled with N per minute. Its state is the time at which it will be full
//! again. If that time is half a minute ahead, half of the bucket is used. So the used fraction stays the same when the
//! limit changes, and no job has to refill buckets.

use crate::time::UnixMs;

/// The state of a limit per minute: the time at which the bucket is full again, in Unix nanoseconds.
///
/// The default is in the past, so the bucket is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Bucket(i64);

/// The state of a limit after a request, for the rate-limit headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The limit per minute.
    pub limit: u32,
    /// The number of requests or tokens that could be taken now.
    pub remaining: u32,
    /// Milliseconds until the bucket is full.
    pub reset_ms: u64,
}

/// How long to wait until a bucket has enough tokens for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// There will be enough tokens after this many milliseconds, if no other request takes any.
    Ms(u64),
    /// There will never be enough tokens: the request exceeds the whole bucket.
    Never,
}

const MINUTE_NS: i128 = 60_000_000_000;
const MS_NS: i128 = 1_000_000;

/// The furthest that the state can lie in the future: an absurd usage report blocks a key for an hour at most.
const AHEAD_NS_MAX: i128 = 60 * MINUTE_NS;

/// A state further ahead than this is ignored, because it was written before the clock was set back. The limit is twice
/// [`AHEAD_NS_MAX`], so that a request with a slightly earlier time never erases a debt.
const CREDIBLE_NS_MAX: i128 = 2 * AHEAD_NS_MAX;

impl Bucket {
    /// A bucket with a stored state.
    pub const fn from_state(full_at_ns: i64) -> Self {
        Self(full_at_ns)
    }

    /// The state to store.
    pub const fn state(self) -> i64 {
        self.0
    }

    /// Takes `count` tokens of `limit` per minute, all or none.
    pub fn take(&mut self, count: u64, limit: u32, now: UnixMs) -> Result<(), Wait> {
        if count == 0 {
            return Ok(());
        }
        if count > u64::from(limit) {
            return Err(Wait::Never);
        }
        let wanted = self.used(limit, now) + i128::from(count) * MINUTE_NS;
        let excess = wanted - i128::from(limit) * MINUTE_NS;
        if excess > 0 {
            return Err(Wait::Ms(ms_up(div_up(excess, limit))));
        }
        self.set_ahead(div_up(wanted, limit), now);
        Ok(())
    }

    /// Takes `count` tokens even if the bucket does not have them, for usage beyond the estimate.
    pub fn force(&mut self, count: u64, limit: u32, now: UnixMs) {
        if count == 0 || limit == 0 {
            return;
        }
        let wanted = self.used(limit, now) + i128::from(count) * MINUTE_NS;
        self.set_ahead(div_up(wanted, limit), now);
    }

    /// Returns `count` tokens. A full bucket stays full.
    pub fn give_back(&mut self, count: u64, limit: u32, now: UnixMs) {
        if count == 0 || limit == 0 {
            return;
        }
        let kept = self.used(limit, now) - i128::from(count) * MINUTE_NS;
        self.set_ahead(div_up(kept.max(0), limit), now);
    }

    /// Replaces an estimate with the actual usage.
    pub fn correct(&mut self, estimated: u64, actual: u64, limit: u32, now: UnixMs) {
        if actual > estimated {
            self.force(actual - estimated, limit, now);
        } else {
            self.give_back(estimated - actual, limit, now);
        }
    }

    /// The current state, for the rate-limit headers.
    pub fn rate(self, limit: u32, now: UnixMs) -> Rate {
        let free = i128::from(limit) * MINUTE_NS - self.used(limit, now);
        Rate {
            limit,
            remaining: u32::try_from(free.max(0) / MINUTE_NS).unwrap_or(limit),
            reset_ms: ms_up(self.ahead(now)),
        }
    }

    /// The time until the bucket is full, in nanoseconds.
    fn ahead(self, now: UnixMs) -> i128 {
        let ahead = i128::from(self.0) - i128::from(now.get()) * MS_NS;
        if ahead > CREDIBLE_NS_MAX {
            0
        } else {
            ahead.max(0)
        }
    }

    /// The used tokens, multiplied by [`MINUTE_NS`].
    ///
    /// The stored time was rounded up to a whole nanosecond, so the product is too large by less than `limit`. The
    /// exact product is a multiple of [`MS_NS`], because time passes in whole milliseconds. If `limit` is at most
    /// `MS_NS`, rounding down to such a multiple removes the error. With a larger limit, a product just above whole
    /// tokens is rounded down to them. So errors do not accumulate, and a burst of N is exactly N.
    fn used(self, limit: u32, now: UnixMs) -> i128 {
        let limit = i128::from(limit);
        let used = self.ahead(now) * limit;
        let grid = if limit <= MS_NS { MS_NS } else { MINUTE_NS };
        let rounding = used % grid;
        if rounding < limit {
            used - rounding
        } else {
            used
        }
    }

    fn set_ahead(&mut self, ahead: i128, now: UnixMs) {
        let full_at = i128::from(now.get()) * MS_NS + ahead.min(AHEAD_NS_MAX);
        self.0 = i64::try_from(full_at).unwrap_or(i64::MAX);
    }
}

fn div_up(amount: i128, limit: u32) -> i128 {
    let limit = i128::from(limit);
    (amount + limit - 1) / limit
}

fn ms_up(ns: i128) -> u64 {
    u64::try_from((ns + MS_NS - 1) / MS_NS).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOON: UnixMs = UnixMs::new(1_700_000_000_000);

    fn burst(bucket: &mut Bucket, limit: u32, now: UnixMs) -> u32 {
        let mut taken = 0;
        while taken <= limit && bucket.take(1, limit, now).is_ok() {
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_burst_of_the_limit_is_admitted_exactly() {
        // Limits that divide a minute and limits that do not, small limits and limits beyond the nanosecond resolution.
        for limit in [1, 2, 3, 7, 59, 60, 61, 999, 10_007, 99_991] {
            assert_eq!(burst(&mut Bucket::default(), limit, NOON), limit);
        }
        for limit in [1_000_003, 7_000_001, 999_999_937, u32::MAX] {
            // A burst in a thousand unequal pieces, each of which is rounded separately.
            let mut bucket = Bucket::default();
            let mut left = u64::from(limit);
            for piece in 1..1000 {
                let count = (left / 300 + piece).min(left);
                assert_eq!(bucket.take(count, limit, NOON), Ok(()), "{limit}");
                left -= count;
            }
            assert_eq!(u64::from(bucket.rate(limit, NOON).remaining), left);
            assert!(bucket.take(left + 1, limit, NOON).is_err());
            assert_eq!(bucket.take(left, limit, NOON), Ok(()));
            assert_eq!(bucket.rate(limit, NOON).remaining, 0);
            assert!(bucket.take(1, limit, NOON).is_err());
        }
    }

    #[test]
    fn after_a_burst_the_refill_rate_holds() {
        let mut bucket = Bucket::default();
        assert_eq!(burst(&mut bucket, 7, NOON), 7);
        // A seventh of a minute is 8571.43 ms.
        assert_eq!(bucket.take(1, 7, NOON), Err(Wait::Ms(8572)));
        assert_eq!(bucket.take(1, 7, NOON.plus_ms(8571)), Err(Wait::Ms(1)));
        assert_eq!(bucket.take(1, 7, NOON.plus_ms(8572)), Ok(()));
        assert_eq!(bucket.take(1, 7, NOON.plus_ms(8572)), Err(Wait::Ms(8571)));
        assert_eq!(bucket.take(1, 7, NOON.plus_ms(17_143)), Ok(()));
    }

    #[test]
    fn more_than_the_whole_bucket_is_never_there() {
        assert_eq!(Bucket::default().take(11, 10, NOON), Err(Wait::Never));
        assert_eq!(Bucket::default().take(u64::MAX, 10, NOON), Err(Wait::Never));
        assert_eq!(Bucket::default().take(1, 0, NOON), Err(Wait::Never));
    }

    #[test]
    fn the_rate_shows_what_is_left_and_when_it_is_full() {
        let mut bucket = Bucket::default();
        let full = Rate {
            limit: 60,
            remaining: 60,
            reset_ms: 0,
        };
        assert_eq!(bucket.rate(60, NOON), full);
        bucket.take(45, 60, NOON).unwrap();
        for (after_ms, remaining, reset_ms) in [
            (0, 15, 45_000),
            (1, 15, 44_999),
            (999, 15, 44_001),
            (1000, 16, 44_000),
            (44_999, 59, 1),
            (45_000, 60, 0),
            (90_000, 60, 0),
        ] {
            let rate = bucket.rate(60, NOON.plus_ms(after_ms));
            assert_eq!(
                (rate.remaining, rate.reset_ms),
                (remaining, reset_ms),
                "{after_ms}"
            );
        }
        assert_eq!(bucket.rate(0, NOON).remaining, 0);
    }

    #[test]
    fn a_change_of_the_limit_keeps_the_used_part() {
        let mut bucket = Bucket::default();
        bucket.take(30, 60, NOON).unwrap();
        assert_eq!(bucket.rate(600, NOON).remaining, 300);
        assert_eq!(bucket.rate(6, NOON).remaining, 3);
        assert_eq!(bucket.rate(7, NOON).remaining, 3);
        bucket.take(3, 6, NOON).unwrap();
        assert_eq!(bucket.take(1, 600, NOON), Err(Wait::Ms(100)));
    }

    #[test]
    fn a_correction_gives_back_or_leaves_a_debt() {
        for (actual, remaining, wait_ms) in
            [(40, 60, 0), (0, 100, 0), (100, 0, 600), (160, 0, 36_600)]
        {
            let mut bucket = Bucket::default();
            bucket.take(40, 100, NOON).unwrap();
            bucket.correct(40, actual, 100, NOON);
            assert_eq!(bucket.rate(100, NOON).remaining, remaining, "{actual}");
            let next = bucket.take(1, 100, NOON);
            let wait = if wait_ms == 0 {
                Ok(())
            } else {
                Err(Wait::Ms(wait_ms))
            };
            assert_eq!(next, wait, "{actual}");
        }
    }

    #[test]
    fn giving_back_never_fills_beyond_the_limit() {
        let mut bucket = Bucket::default();
        bucket.take(5, 10, NOON).unwrap();
        bucket.give_back(u64::MAX, 10, NOON);
        assert_eq!(burst(&mut bucket, 10, NOON), 10);
    }

    #[test]
    fn no_report_locks_a_bucket_for_more_than_an_hour() {
        let mut bucket = Bucket::default();
        bucket.force(u64::MAX, 1, NOON);
        assert_eq!(bucket.take(1, 1, NOON), Err(Wait::Ms(3_600_000)));
        // A request with a slightly earlier time does not erase the debt.
        assert_eq!(
            bucket.take(1, 1, NOON.minus_ms(5)),
            Err(Wait::Ms(3_600_005))
        );
        assert_eq!(bucket.take(1, 1, NOON.plus_ms(3_600_000)), Ok(()));
    }

    #[test]
    fn a_clock_set_back_does_not_lock_a_bucket() {
        let mut bucket = Bucket::default();
        burst(&mut bucket, 10, NOON);
        assert_eq!(bucket.take(1, 10, NOON.minus_ms(86_400_000)), Ok(()));
    }

    #[test]
    fn a_request_for_zero_tokens_always_succeeds() {
        let mut bucket = Bucket::default();
        bucket.force(200, 100, NOON);
        let before = bucket;
        assert_eq!(bucket.take(0, 100, NOON), Ok(()));
        assert_eq!(bucket, before);
    }

    #[test]
    fn no_time_makes_it_panic() {
        for now in [i64::MIN, -1, 0, i64::MAX].map(UnixMs::new) {
            for state in [i64::MIN, 0, i64::MAX] {
                let mut bucket = Bucket::from_state(state);
                let _ = bucket.take(1, u32::MAX, now);
                bucket.correct(0, u64::MAX, u32::MAX, now);
                bucket.correct(u64::MAX, 0, 1, now);
                assert!(bucket.rate(1, now).remaining <= 1);
            }
        }
    }

    /// A simple model of a bucket: a level that rises with every millisecond.
    struct Naive {
        /// In units of 1/60000 token. With a limit of N, the level rises by N per millisecond.
        level: i128,
        filled_at: i64,
        limit: i128,
    }

    impl Naive {
        fn refill(&mut self, now: i64) {
            let risen = self.level + self.limit * i128::from(now - self.filled_at);
            self.level = risen.min(self.limit * 60_000);
            self.filled_at = now;
        }

        fn take(&mut self, count: u64) -> bool {
            let left = self.level - i128::from(count) * 60_000;
            if left >= 0 {
                self.level = left;
            }
            left >= 0
        }
    }

    proptest! {
        #[test]
        fn it_decides_as_a_level_that_rises(
            limit in prop_oneof![1_u32..50, 50_u32..5_000, 5_000_u32..1_000_000],
            steps in prop::collection::vec((0_i64..4_000, 0_u8..4, 0_u64..1_000), 1..200),
        ) {
            let mut bucket = Bucket::default();
            let mut naive = Naive { level: i128::from(limit) * 60_000, filled_at: NOON.get(), limit: i128::from(limit) };
            let mut now = NOON;
            for (pause_ms, what, part) in steps {
                now = now.plus_ms(pause_ms);
                naive.refill(now.get());
                let count = (u64::from(limit) * part / 2_000).max(1);
                match what {
                    0 => {
                        bucket.give_back(count, limit, now);
                        naive.level += i128::from(count) * 60_000;
                        naive.refill(now.get());
                    }
                    1 => {
                        bucket.force(count / 2, limit, now);
                        naive.level -= i128::from(count / 2) * 60_000;
                    }
                    _ => {
                        let taken = bucket.take(count, limit, now);
                        prop_assert_eq!(taken.is_ok(), naive.take(count));
                        if let Err(Wait::Ms(ms)) = taken {
                            let (mut early, mut late) = (bucket, bucket);
                            let at = now.plus_ms(i64::try_from(ms).unwrap());
                            prop_assert!(late.take(count, limit, at).is_ok());
                            prop_assert!(early.take(count, limit, at.minus_ms(1)).is_err());
                        }
                    }
                }
                let shown = i128::from(bucket.rate(limit, now).remaining);
                prop_assert_eq!(shown, naive.level.max(0) / 60_000);
            }
        }

        #[test]
        fn taking_and_returning_tokens_changes_nothing(
            limit in 1_u32..=1_000_000,
            before in 0_u64..1_000,
            count in 0_u64..1_000,
            pause in 0_i64..70_000,
        ) {
            // Very large debts are capped, so they are excluded here.
            prop_assume!(u64::from(limit) * 59 > before + count);
            let mut bucket = Bucket::default();
            bucket.force(before, limit, NOON);
            let now = NOON.plus_ms(pause);
            let used = bucket.used(limit, now);
            for _ in 0..9 {
                bucket.force(count, limit, now);
                bucket.give_back(count, limit, now);
                prop_assert_eq!(bucket.used(limit, now), used);
            }
        }
    }
}

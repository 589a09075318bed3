//! A clock for limits per minute: wall-clock time that never goes back.
//!
//! The state of a bucket is a time in the future. If the wall clock is set back by an hour, that
//! time is an hour further away, and the key would be refused for an hour. To prevent this, the
//! clock adds the time by which the wall clock was set back. A wall clock that is set forward only
//! refills buckets, as if that time had passed.

use crate::time::UnixMs;

/// A time that is earlier by at most this is not a jump, because requests may be decided slightly out of order.
const DISORDER_MS: i64 = 5_000;

/// Tracks the times of admissions and detects when the wall clock is set back.
#[derive(Debug, Clone, Copy, Default)]
pub struct RateClock {
    /// The latest wall time since the last jump.
    latest: Option<UnixMs>,
    /// The total time by which the wall clock was set back.
    set_back_ms: i64,
}

impl RateClock {
    /// Records the wall time of an admission.
    pub fn note(&mut self, wall: UnixMs) {
        let latest = self.latest.unwrap_or(wall);
        let back_ms = latest.ms_since(wall);
        if back_ms > DISORDER_MS {
            self.set_back_ms = self.set_back_ms.saturating_add(back_ms);
            self.latest = Some(wall);
        } else {
            self.latest = Some(latest.max(wall));
        }
    }

    /// Converts a wall-clock time to the time that limits per minute use.
    pub fn at(&self, wall: UnixMs) -> UnixMs {
        wall.plus_ms(self.set_back_ms)
    }
}

/// The two times that an admission needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmitTime {
    /// The wall-clock time, which decides whether a key has expired.
    pub wall: UnixMs,
    /// The time of the `RateClock`, which limits per minute use.
    pub rates: UnixMs,
}

/// Both times are the same if the wall clock was never set back.
impl From<UnixMs> for AdmitTime {
    fn from(now: UnixMs) -> Self {
        Self {
            wall: now,
            rates: now,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bucket::Bucket;
    use crate::time::HOUR_MS;

    const NOON: UnixMs = UnixMs::new(1_700_000_000_000);

    #[test]
    fn disorder_is_not_a_jump() {
        let mut clock = RateClock::default();
        for wall in [
            NOON,
            NOON.minus_ms(4_000),
            NOON.plus_ms(1),
            NOON.minus_ms(4_999),
        ] {
            clock.note(wall);
            assert_eq!(clock.at(wall), wall);
        }
        clock.note(NOON.minus_ms(HOUR_MS));
        assert_eq!(clock.at(NOON.minus_ms(HOUR_MS)), NOON.plus_ms(1));
    }

    proptest! {
        /// However the wall clock jumps, a key gets its limit per minute. Setting the clock back
        /// never locks a key out. Setting it forward gives the key at most one more full bucket
        /// each time.
        #[test]
        fn a_limit_holds_under_any_jumps(
            steps in prop::collection::vec((0_i64..2_000, prop_oneof![
                8 => Just(0_i64),
                1 => -25 * HOUR_MS..-6_000_i64,
                1 => 6_000_i64..25 * HOUR_MS,
            ]), 1..300),
        ) {
            const LIMIT: u32 = 60;
            let (mut clock, mut bucket) = (RateClock::default(), Bucket::default());
            let (mut wall, mut passed_ms, mut taken, mut ahead) = (NOON, 0, 0, 0);
            for (pause_ms, jump_ms) in steps {
                passed_ms += pause_ms;
                ahead += i64::from(jump_ms > 0);
                wall = wall.plus_ms(pause_ms + jump_ms);
                clock.note(wall);
                let before = bucket;
                let result = bucket.take(1, LIMIT, clock.at(wall));
                match result {
                    Ok(()) => taken += 1,
                    // One token comes back each second, however the clock was set.
                    Err(wait) => {
                        prop_assert_eq!(before, bucket);
                        prop_assert!(matches!(wait, crate::bucket::Wait::Ms(ms) if ms <= 1_000), "{:?}", wait);
                    }
                }
            }
            let most = i64::from(LIMIT) * (1 + ahead) + passed_ms / 1_000 + 1;
            prop_assert!(taken <= most, "{} of {}", taken, most);
        }
    }
}

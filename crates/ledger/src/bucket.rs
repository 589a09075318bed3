//! A token bucket whose whole state is one timestamp.
//!
//! A bucket of N holds N tokens and is refilled with N per minute. Its state is the moment at
//! which it will be full again; the part of a minute that lies ahead is the part of the bucket
//! that is used. So a change of the limit between two calls keeps the used part, and a bucket
//! nobody touches needs no refilling.

use crate::time::UnixMs;

/// How far a limit per minute is used: the moment it is whole again, in Unix nanoseconds.
///
/// The default, long ago, is a full bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Bucket(i64);

/// Where a limit stands after a request, for the rate-limit headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The limit per minute.
    pub limit: u32,
    /// What could be taken at once now.
    pub remaining: u32,
    /// Milliseconds until the bucket is full.
    pub reset_ms: u64,
}

/// Why nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// There will be enough in so many milliseconds, if nobody else takes.
    Ms(u64),
    /// There will never be enough: more was asked for than the whole bucket holds.
    Never,
}

const MINUTE_NS: i128 = 60_000_000_000;
const MS_NS: i128 = 1_000_000;

/// How deep in debt a correction may leave a bucket. A state further ahead was written under a
/// clock that has since been set back, and counts for nothing.
const DEBT_NS_MAX: i128 = 60 * MINUTE_NS;

impl Bucket {
    /// The bucket with a stored state.
    pub const fn from_state(full_at_ns: i64) -> Self {
        Self(full_at_ns)
    }

    /// The state to store.
    pub const fn state(self) -> i64 {
        self.0
    }

    /// Takes `count` tokens of `limit` per minute, all of them or none.
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

    /// Takes `count` tokens even if they are not there: what was used beyond the estimate.
    pub fn force(&mut self, count: u64, limit: u32, now: UnixMs) {
        if count == 0 || limit == 0 {
            return;
        }
        let wanted = self.used(limit, now) + i128::from(count) * MINUTE_NS;
        self.set_ahead(div_up(wanted, limit), now);
    }

    /// Gives `count` tokens back; a full bucket stays full.
    pub fn give_back(&mut self, count: u64, limit: u32, now: UnixMs) {
        if count == 0 || limit == 0 {
            return;
        }
        let kept = self.used(limit, now) - i128::from(count) * MINUTE_NS;
        self.set_ahead(kept.max(0) / i128::from(limit), now);
    }

    /// Corrects an estimate to what was really used.
    pub fn correct(&mut self, estimated: u64, actual: u64, limit: u32, now: UnixMs) {
        if actual > estimated {
            self.force(actual - estimated, limit, now);
        } else {
            self.give_back(estimated - actual, limit, now);
        }
    }

    /// Where the limit stands.
    pub fn rate(self, limit: u32, now: UnixMs) -> Rate {
        let free = i128::from(limit) * MINUTE_NS - self.used(limit, now);
        Rate {
            limit,
            remaining: u32::try_from(free.max(0) / MINUTE_NS).unwrap_or(limit),
            reset_ms: ms_up(self.ahead(now)),
        }
    }

    /// How far ahead the bucket is full, in nanoseconds.
    fn ahead(self, now: UnixMs) -> i128 {
        let ahead = i128::from(self.0) - i128::from(now.get()) * MS_NS;
        if ahead > DEBT_NS_MAX { 0 } else { ahead.max(0) }
    }

    /// What is used of the bucket, in tokens times a minute of nanoseconds.
    ///
    /// The state is rounded up to a whole nanosecond when it is written. Undoing that here, where
    /// it hides a whole number of tokens, is what makes a burst of N exactly N for every N.
    fn used(self, limit: u32, now: UnixMs) -> i128 {
        let used = self.ahead(now) * i128::from(limit);
        let fraction = used % MINUTE_NS;
        if fraction < i128::from(limit) {
            used - fraction
        } else {
            used
        }
    }

    fn set_ahead(&mut self, ahead: i128, now: UnixMs) {
        let full_at = i128::from(now.get()) * MS_NS + ahead.min(DEBT_NS_MAX);
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

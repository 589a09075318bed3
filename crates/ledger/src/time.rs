//! Points in time, as the contract counts them: Unix milliseconds.

use serde::{Deserialize, Serialize};

/// A minute in milliseconds.
pub const MINUTE_MS: i64 = 60_000;
/// An hour in milliseconds.
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
/// A day in milliseconds. Every day of UTC has this length, because Unix time has no leap seconds.
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// A point in time in Unix milliseconds. It is always an argument here, never read from a clock.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct UnixMs(i64);

impl UnixMs {
    /// The point `ms` milliseconds after the epoch.
    pub const fn new(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The point `ms` later, saturating.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// The point `ms` earlier, saturating.
    #[must_use]
    pub const fn minus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// Milliseconds from `earlier` to this point; negative if this point is earlier.
    pub const fn ms_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_undoes_addition() {
        let noon = UnixMs::new(1_700_000_000_000);
        assert_eq!(noon.plus_ms(250).ms_since(noon), 250);
        assert_eq!(noon.minus_ms(250).ms_since(noon), -250);
        assert_eq!(noon.plus_ms(250).minus_ms(250), noon);
    }

    #[test]
    fn the_ends_of_time_do_not_wrap() {
        assert_eq!(UnixMs::new(i64::MAX).plus_ms(1).get(), i64::MAX);
        assert_eq!(UnixMs::new(i64::MIN).minus_ms(1).get(), i64::MIN);
        assert_eq!(UnixMs::new(i64::MAX).ms_since(UnixMs::new(-1)), i64::MAX);
    }
}

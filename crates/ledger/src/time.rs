//! Points in time in Unix milliseconds, the unit of the API.

use serde::{Deserialize, Serialize};

/// A minute in milliseconds.
pub const MINUTE_MS: i64 = 60_000;
/// An hour in milliseconds.
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
/// A day in milliseconds. Every day of UTC has this length, because Unix time has no leap seconds.
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// A point in time in Unix milliseconds. This crate never reads a clock; every time is an argument.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct UnixMs(i64);

impl UnixMs {
    /// The time `ms` milliseconds after the Unix epoch.
    pub const fn new(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The time `ms` milliseconds later, saturating.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// The time `ms` milliseconds earlier, saturating.
    #[must_use]
    pub const fn minus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// Milliseconds from `earlier` to this time; negative if `earlier` is later than this time.
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

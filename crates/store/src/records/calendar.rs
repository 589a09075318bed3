//! The periods of spending limits: days, weeks and months in a time zone.
//!
//! The time zone data is compiled in, so that all nodes agree on the end of a period regardless of their systems' time
//! zone data.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan as _};
use ledger::{DAY_MS, UnixMs};

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The length of a period. Weeks begin on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeriodLength {
    Day,
    Week,
    Month,
}

/// Divides time into days, weeks or months of a time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    per: PeriodLength,
    zone: TimeZone,
}

/// A time zone that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no time zone `{0}`; use a name such as UTC or Europe/Berlin")]
pub struct UnknownZone(String);

/// A word that is not the length of a period.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a period; use day, week or month")]
pub struct UnknownPeriodLength(String);

impl Calendar {
    /// A calendar for the time zone with this IANA name.
    pub fn new(per: PeriodLength, zone: &str) -> Result<Self, UnknownZone> {
        let found = ZONES.get(zone);
        let zone = found.map_err(|_| UnknownZone(zone.chars().take(64).collect()))?;
        Ok(Self { per, zone })
    }

    /// The calendar from the columns of a key. A time zone that this program does not know counts as UTC.
    pub(crate) fn stored(per: &str, zone: &str) -> Self {
        let per = per.parse().unwrap_or(PeriodLength::Day);
        Self::new(per, zone).unwrap_or_else(|error| {
            tracing::error!(%error, "the time zone of a key is unknown, and UTC is used");
            Self {
                per,
                zone: TimeZone::UTC,
            }
        })
    }

    pub fn per(&self) -> PeriodLength {
        self.per
    }

    /// The IANA name of the time zone.
    pub fn time_zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The end of the period that contains `now`: the first moment of the next one.
    pub fn period_end(&self, now: UnixMs) -> UnixMs {
        // The calendar has no later dates, so the period does not end.
        self.next_begin(now).unwrap_or(UnixMs::new(i64::MAX))
    }

    /// Whether a period that ends at `ends_at` begins after `now`. That happens if the clock was far ahead when the
    /// period began.
    pub(crate) fn begins_after(&self, now: UnixMs, ends_at: UnixMs) -> bool {
        ends_at.ms_since(now) > self.per.longest_ms()
    }

    fn next_begin(&self, now: UnixMs) -> Option<UnixMs> {
        let now = Timestamp::from_millisecond(now.get()).ok()?;
        let today = now.to_zoned(self.zone.clone()).date();
        let next = self.per.next(today)?;
        // Where the clock skips midnight, the day begins with the first moment that exists.
        let begin = next.to_zoned(self.zone.clone()).ok()?;
        Some(UnixMs::new(begin.timestamp().as_millisecond()))
    }
}

impl PeriodLength {
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The first day of the period after the one that contains `date`.
    fn next(self, date: Date) -> Option<Date> {
        let (first, length) = match self {
            Self::Day => (date, 1.day()),
            Self::Week => {
                let since_monday = i64::from(date.weekday().to_monday_zero_offset());
                (date.checked_sub(since_monday.days()).ok()?, 1.week())
            }
            Self::Month => (date.first_of_month(), 1.month()),
        };
        first.checked_add(length).ok()
    }

    /// An upper bound on the length of a period. A clock that is set back, or an island that moves across the date
    /// line, adds at most a day.
    const fn longest_ms(self) -> i64 {
        match self {
            Self::Day => 2 * DAY_MS,
            Self::Week => 8 * DAY_MS,
            Self::Month => 32 * DAY_MS,
        }
    }
}

impl fmt::Display for PeriodLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PeriodLength {
    type Err = UnknownPeriodLength;

    fn from_str(text: &str) -> Result<Self, UnknownPeriodLength> {
        let found = Self::ALL.into_iter().find(|per| per.as_str() == text);
        found.ok_or_else(|| UnknownPeriodLength(text.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> UnixMs {
        let time: Timestamp = text.parse().unwrap();
        UnixMs::new(time.as_millisecond())
    }

    #[test]
    fn a_period_ends_where_the_next_one_begins_in_its_zone() {
        for (per, zone, now, end) in [
            (
                PeriodLength::Day,
                "UTC",
                "2026-11-17T00:00:00Z",
                "2026-11-18T00:00:00Z",
            ),
            (
                PeriodLength::Day,
                "UTC",
                "2026-11-17T23:59:59.999Z",
                "2026-11-18T00:00:00Z",
            ),
            (
                PeriodLength::Day,
                "Asia/Tokyo",
                "2026-11-17T14:59:59Z",
                "2026-11-17T15:00:00Z",
            ),
            (
                PeriodLength::Day,
                "America/New_York",
                "2026-11-17T04:59:00Z",
                "2026-11-17T05:00:00Z",
            ),
            (
                PeriodLength::Day,
                "Asia/Kolkata",
                "2026-11-17T18:30:00Z",
                "2026-11-18T18:30:00Z",
            ),
            // One day has 23 hours, another has 25.
            (
                PeriodLength::Day,
                "Europe/Berlin",
                "2026-03-28T23:00:00Z",
                "2026-03-29T22:00:00Z",
            ),
            (
                PeriodLength::Day,
                "Europe/Berlin",
                "2026-10-24T22:00:00Z",
                "2026-10-25T23:00:00Z",
            ),
            // Midnight does not exist: the day begins at one o'clock.
            (
                PeriodLength::Day,
                "America/Sao_Paulo",
                "2018-11-03T12:00:00Z",
                "2018-11-04T03:00:00Z",
            ),
            // Samoa skipped a whole day.
            (
                PeriodLength::Day,
                "Pacific/Apia",
                "2011-12-30T09:59:59Z",
                "2011-12-30T10:00:00Z",
            ),
            (
                PeriodLength::Week,
                "UTC",
                "2026-11-16T00:00:00Z",
                "2026-11-23T00:00:00Z",
            ),
            (
                PeriodLength::Week,
                "UTC",
                "2026-11-22T23:59:59Z",
                "2026-11-23T00:00:00Z",
            ),
            (
                PeriodLength::Week,
                "Europe/Berlin",
                "2026-03-25T00:00:00Z",
                "2026-03-29T22:00:00Z",
            ),
            (
                PeriodLength::Month,
                "UTC",
                "2028-02-01T00:00:00Z",
                "2028-03-01T00:00:00Z",
            ),
            (
                PeriodLength::Month,
                "UTC",
                "2026-12-31T23:59:59Z",
                "2027-01-01T00:00:00Z",
            ),
            (
                PeriodLength::Month,
                "Pacific/Auckland",
                "2026-11-30T10:59:59Z",
                "2026-11-30T11:00:00Z",
            ),
        ] {
            let calendar = Calendar::new(per, zone).unwrap();
            assert_eq!(
                calendar.period_end(at(now)),
                at(end),
                "{per} in {zone} at {now}"
            );
        }
    }

    #[test]
    fn names_are_read_in_any_case_and_unknown_ones_are_refused() {
        let calendar = Calendar::new(PeriodLength::Day, "europe/berlin").unwrap();
        assert_eq!(calendar.time_zone(), "Europe/Berlin");
        assert_eq!(
            Calendar::new(PeriodLength::Day, "utc").unwrap().time_zone(),
            "UTC"
        );
        for zone in ["", "Berlin", "Europe/Nowhere", "+02:00", "../etc/passwd"] {
            assert!(Calendar::new(PeriodLength::Day, zone).is_err(), "{zone}");
        }
        assert_eq!(Calendar::stored("week", "Mars/Base").time_zone(), "UTC");
        assert!("year".parse::<PeriodLength>().is_err());
    }

    #[test]
    fn beyond_the_calendar_no_period_ends() {
        let calendar = Calendar::new(PeriodLength::Day, "UTC").unwrap();
        for ms in [i64::MAX, i64::MIN] {
            assert_eq!(calendar.period_end(UnixMs::new(ms)).get(), i64::MAX);
        }
    }

    proptest! {
        /// Every moment of a period has the same end, the end belongs to the next period, and no period exceeds the
        /// upper bound.
        #[test]
        fn periods_follow_each_other_without_a_gap(
            now in 1_400_000_000_000_i64..2_200_000_000_000,
            zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York",
                "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"]),
            per in prop::sample::select(PeriodLength::ALL.to_vec()),
            thousandths in 0..1_000_i64,
        ) {
            let calendar = Calendar::new(per, zone).unwrap();
            let now = UnixMs::new(now);
            let end = calendar.period_end(now);
            prop_assert!(end > now);
            prop_assert!(!calendar.begins_after(now, end));
            let between = now.plus_ms(end.ms_since(now) / 1_000 * thousandths);
            prop_assert_eq!(calendar.period_end(between), end);
            prop_assert_eq!(calendar.period_end(end.minus_ms(1)), end);
            prop_assert!(calendar.period_end(end) > end);
        }
    }
}

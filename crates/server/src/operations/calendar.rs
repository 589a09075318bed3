//! Days and months in UTC, for statements and sums of spending.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use ledger::{DAY_MS, UnixMs};

pub(crate) fn day_start(time: UnixMs) -> UnixMs {
    UnixMs::new(time.get().div_euclid(DAY_MS).saturating_mul(DAY_MS))
}

pub(crate) fn month_start(time: UnixMs) -> UnixMs {
    Month::of(time).map_or_else(|| day_start(time), Month::start)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Month(Date);

impl Month {
    /// The month that contains a time. `None` if the time is outside of the calendar's range.
    pub(crate) fn of(time: UnixMs) -> Option<Self> {
        let time = Timestamp::from_millisecond(time.get()).ok()?;
        Some(Self(time.to_zoned(TimeZone::UTC).date().first_of_month()))
    }

    pub(crate) fn next(self) -> Option<Self> {
        self.0.checked_add(1.month()).ok().map(Self)
    }

    /// The first millisecond of the month.
    pub(crate) fn start(self) -> UnixMs {
        let start = self.0.to_zoned(TimeZone::UTC);
        UnixMs::new(start.map_or(0, |start| start.timestamp().as_millisecond()))
    }

    /// The name of the month, such as `2026-11`.
    pub(crate) fn name(self) -> String {
        self.0.strftime("%Y-%m").to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_months_begin_at_midnight_utc() {
        // 2026-02-28T23:59:59.999Z and the next millisecond.
        let end = UnixMs::new(1_772_323_199_999);
        let next = end.plus_ms(1);
        assert_eq!(day_start(end), UnixMs::new(1_772_236_800_000));
        assert_eq!(day_start(next), next);
        assert_eq!(month_start(next), next);
        let february = Month::of(end).unwrap();
        assert_eq!(february.name(), "2026-02");
        assert_eq!(february.next().unwrap().start(), next);
        assert_eq!(Month::of(next), february.next());
        assert_eq!(month_start(end), UnixMs::new(1_769_904_000_000));
        assert_eq!(Month::of(UnixMs::new(i64::MAX)), None);
    }
}

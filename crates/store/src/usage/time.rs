//! The time steps of a report. Days and months are in UTC.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ledger::{DAY_MS, HOUR_MS, MINUTE_MS, UnixMs};

/// The length of the steps of a time series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageStep {
    Minute,
    Hour,
    Day,
    Month,
}

impl UsageStep {
    /// The start of the step that contains this time.
    pub fn start_of(self, at: UnixMs) -> UnixMs {
        match self {
            Self::Minute => floor(at, MINUTE_MS),
            Self::Hour => floor(at, HOUR_MS),
            Self::Day => floor(at, DAY_MS),
            Self::Month => start_of_month(at),
        }
    }

    /// The time itself if it is the start of a step, otherwise the start of the next step.
    pub(super) fn ceil(self, at: UnixMs) -> UnixMs {
        match self {
            Self::Minute => ceil(at, MINUTE_MS),
            Self::Hour => ceil(at, HOUR_MS),
            Self::Day => ceil(at, DAY_MS),
            Self::Month => {
                let start = start_of_month(at);
                if start == at {
                    return at;
                }
                // Months have 28 to 31 days, so 32 days after its start is always within the next month.
                start_of_month(start.plus_ms(32 * DAY_MS))
            }
        }
    }
}

pub(super) fn floor(at: UnixMs, unit_ms: i64) -> UnixMs {
    UnixMs::new(at.get().div_euclid(unit_ms).saturating_mul(unit_ms))
}

pub(super) fn ceil(at: UnixMs, unit_ms: i64) -> UnixMs {
    floor(at.plus_ms(unit_ms - 1), unit_ms)
}

fn start_of_month(at: UnixMs) -> UnixMs {
    let start = Timestamp::from_millisecond(at.get()).ok().and_then(|at| {
        let day = at.to_zoned(TimeZone::UTC).date().first_of_month();
        day.to_zoned(TimeZone::UTC).ok()
    });
    start.map_or(at, |start| UnixMs::new(start.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_begins_where_its_clock_says() {
        let at = |text: &str| UnixMs::new(text.parse::<Timestamp>().unwrap().as_millisecond());
        for (step, start) in [
            (UsageStep::Minute, "2028-02-29T23:59:00Z"),
            (UsageStep::Hour, "2028-02-29T23:00:00Z"),
            (UsageStep::Day, "2028-02-29T00:00:00Z"),
            (UsageStep::Month, "2028-02-01T00:00:00Z"),
        ] {
            assert_eq!(
                step.start_of(at("2028-02-29T23:59:59.999Z")),
                at(start),
                "{step:?}"
            );
            assert_eq!(step.start_of(at(start)), at(start), "{step:?}");
            assert_eq!(step.ceil(at(start)), at(start), "{step:?}");
        }
    }
    #[test]
    fn a_step_ends_where_the_next_one_begins() {
        let at = |text: &str| UnixMs::new(text.parse::<Timestamp>().unwrap().as_millisecond());
        for (time, step, end) in [
            (
                "2028-02-29T23:59:59.999Z",
                UsageStep::Minute,
                "2028-03-01T00:00:00Z",
            ),
            (
                "2028-02-01T00:00:00.001Z",
                UsageStep::Hour,
                "2028-02-01T01:00:00Z",
            ),
            (
                "2028-02-01T00:00:00.001Z",
                UsageStep::Day,
                "2028-02-02T00:00:00Z",
            ),
            (
                "2028-02-01T00:00:00.001Z",
                UsageStep::Month,
                "2028-03-01T00:00:00Z",
            ),
            (
                "2027-12-31T12:00:00Z",
                UsageStep::Month,
                "2028-01-01T00:00:00Z",
            ),
            (
                "2028-01-31T12:00:00Z",
                UsageStep::Month,
                "2028-02-01T00:00:00Z",
            ),
        ] {
            assert_eq!(step.ceil(at(time)), at(end), "{time} {step:?}");
        }
    }
}

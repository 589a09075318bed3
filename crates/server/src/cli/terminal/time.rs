//! Parses and formats times: `30d` from now or ago, or a date.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use ledger::UnixMs;

/// A time argument, which may be relative to the current time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeArg {
    At(UnixMs),
    /// Milliseconds from now: in the future for an expiry, in the past for `--since`.
    FromNow(i64),
}

impl TimeArg {
    pub(crate) fn after(self, now: UnixMs) -> Option<UnixMs> {
        match self {
            Self::At(time) => Some(time),
            Self::FromNow(millis) => now.get().checked_add(millis).map(UnixMs::new),
        }
    }

    pub(crate) fn before(self, now: UnixMs) -> Option<UnixMs> {
        match self {
            Self::At(time) => Some(time),
            Self::FromNow(millis) => now.get().checked_sub(millis).map(UnixMs::new),
        }
    }
}

/// Parses `30d`, `12h`, `15m`, `2s`, `2w`, `2026-12-31`, `2026-12-31T10:00:00Z`. A time without a zone is UTC.
pub(crate) fn parse(text: &str) -> Result<TimeArg, String> {
    let text = text.trim();
    if let Some(millis) = span(text) {
        return Ok(TimeArg::FromNow(millis));
    }
    let time = text
        .parse::<Timestamp>()
        .or_else(|_| {
            let civil: DateTime = text.parse()?;
            civil.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp())
        })
        .map_err(
            |_| "write a span such as 30d, 12h or 2s, or a time such as 2026-12-31T10:00:00Z",
        )?;
    Ok(TimeArg::At(UnixMs::new(time.as_millisecond())))
}

/// Formats a time for people, in UTC.
pub(crate) fn show(time: UnixMs) -> String {
    Timestamp::from_millisecond(time.get()).map_or_else(
        |_| time.get().to_string(),
        |time| time.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
    )
}

pub(crate) fn now() -> UnixMs {
    engine::clock::now()
}

fn span(text: &str) -> Option<i64> {
    const SECOND: i64 = 1000;
    let unit = text.chars().next_back()?;
    let factor = match unit {
        's' => SECOND,
        'm' => 60 * SECOND,
        'h' => 3600 * SECOND,
        'd' => 24 * 3600 * SECOND,
        'w' => 7 * 24 * 3600 * SECOND,
        _ => return None,
    };
    let digits = text.strip_suffix(unit)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<i64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_times_are_read() {
        let day = 24 * 3600 * 1000;
        for (text, expected) in [
            ("2s", TimeArg::FromNow(2000)),
            ("15m", TimeArg::FromNow(900_000)),
            ("12h", TimeArg::FromNow(day / 2)),
            ("30d", TimeArg::FromNow(30 * day)),
            ("2w", TimeArg::FromNow(14 * day)),
            ("0s", TimeArg::FromNow(0)),
            ("1970-01-02", TimeArg::At(UnixMs::new(day))),
            ("1970-01-02T00:00:01Z", TimeArg::At(UnixMs::new(day + 1000))),
            (
                "1970-01-02T01:00:01+01:00",
                TimeArg::At(UnixMs::new(day + 1000)),
            ),
            ("1970-01-02 00:00:01", TimeArg::At(UnixMs::new(day + 1000))),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "d",
            "-3d",
            "3x",
            "30",
            "1.5h",
            "99999999999999999w",
            "2026-13-01",
            "soon",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_span_counts_from_now_in_both_directions() {
        let now = UnixMs::new(10_000);
        assert_eq!(TimeArg::FromNow(2000).after(now), Some(UnixMs::new(12_000)));
        assert_eq!(TimeArg::FromNow(2000).before(now), Some(UnixMs::new(8_000)));
        assert_eq!(TimeArg::FromNow(i64::MAX).after(now), None);
        assert_eq!(show(UnixMs::new(0)), "1970-01-01 00:00:00Z");
    }
}

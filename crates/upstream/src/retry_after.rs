//! Parses `retry-after` and `retry-after-ms`.

use std::time::{Duration, SystemTime};

/// The longest wait that is accepted. The limit also keeps sums of times from overflowing.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryAfter {
    In(Duration),
    At(SystemTime),
}

impl RetryAfter {
    /// The time to wait. The clock is read only for a date. A date in the past means no wait.
    pub(crate) fn wait(self, now: impl FnOnce() -> SystemTime) -> Duration {
        let wait = match self {
            Self::In(wait) => wait,
            Self::At(until) => until.duration_since(now()).unwrap_or_default(),
        };
        wait.min(WAIT_MAX)
    }
}

/// Parses `retry-after`: a date (RFC 9110 section 10.2.3), or seconds, which some upstreams send with a fraction. A
/// date is compared with the response's own `date` header if there is one, because the upstream's clock may differ from
/// ours.
pub(crate) fn seconds(value: &[u8], date: Option<&[u8]>) -> Option<RetryAfter> {
    if let Some(wait) = decimal_ms(value, 3) {
        return Some(RetryAfter::In(wait));
    }
    let until = RetryAfter::At(http_date(value)?);
    match date.and_then(http_date) {
        Some(sent) => Some(RetryAfter::In(until.wait(|| sent))),
        None => Some(until),
    }
}

/// Parses a date in any of the three forms of RFC 9110 section 5.6.7.
fn http_date(value: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(value.trim_ascii()).ok()?;
    httpdate::parse_http_date(text).ok()
}

/// Parses `retry-after-ms`. It is more precise than `retry-after` and takes precedence.
pub(crate) fn milliseconds(value: &[u8]) -> Option<RetryAfter> {
    decimal_ms(value, 0).map(RetryAfter::In)
}

/// Parses a decimal number times ten to the `shift` as milliseconds. It is rounded up, so that we
/// never retry too early.
fn decimal_ms(value: &[u8], shift: usize) -> Option<Duration> {
    let text = std::str::from_utf8(value.trim_ascii()).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let kept: String = fraction.chars().chain("000".chars()).take(shift).collect();
    let more = fraction.bytes().skip(shift).any(|digit| digit != b'0');
    // A number that does not fit is a very long wait.
    let ms = format!("{whole}{kept}").parse::<u64>().unwrap_or(u64::MAX);
    Some(Duration::from_millis(ms.saturating_add(u64::from(more))).min(WAIT_MAX))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{RetryAfter, WAIT_MAX, milliseconds, seconds};

    /// 06 Nov 1994 08:49:37 GMT.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
    }

    fn wait(value: &str) -> Option<Duration> {
        Some(seconds(value.as_bytes(), None)?.wait(now))
    }

    #[test]
    fn seconds_and_their_fractions_are_read() {
        for (text, ms) in [
            ("0", 0),
            ("7", 7_000),
            (" 12 ", 12_000),
            ("1.5", 1_500),
            ("0.0001", 1),
            ("2.250", 2_250),
        ] {
            assert_eq!(wait(text), Some(Duration::from_millis(ms)), "{text}");
        }
        let fine = |ms| Some(RetryAfter::In(Duration::from_millis(ms)));
        assert_eq!(milliseconds(b"250"), fine(250));
        assert_eq!(milliseconds(b"0.5"), fine(1));
    }

    #[test]
    fn a_date_is_the_time_until_then() {
        for (text, s) in [
            ("Sun, 06 Nov 1994 08:50:07 GMT", 30),
            (" Sun, 06 Nov 1994 08:49:38 GMT ", 1),
            ("Sunday, 06-Nov-94 08:50:07 GMT", 30),
            ("Sun Nov  6 08:50:07 1994", 30),
            // The current time, and a time long ago.
            ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ] {
            assert_eq!(wait(text), Some(Duration::from_secs(s)), "{text}");
        }
    }

    #[test]
    fn a_date_is_measured_by_the_clock_of_whoever_sent_it() {
        let wait = |date: &str| {
            let until = b"Sun, 06 Nov 1994 08:50:07 GMT";
            Some(seconds(until, Some(date.as_bytes()))?.wait(now))
        };
        let ten = Some(Duration::from_secs(10));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:57 GMT"), ten);
        // An unreadable date is ignored.
        assert_eq!(wait("yesterday"), Some(Duration::from_secs(30)));
    }

    #[test]
    fn values_that_are_neither_a_number_nor_a_date_are_ignored() {
        for text in [
            "",
            "-1",
            "soon",
            "1e3",
            ".5",
            "5.",
            "Sat, 31 Feb 2026 03:00:00 GMT",
            "Sun, 06 Nov 1994 08:50:07",
            "Sun, 06 Nov 1994 25:50:07 GMT",
            "\u{663}",
        ] {
            assert_eq!(wait(text), None, "{text}");
        }
        assert_eq!(seconds(&[0xff, 0xfe], None), None);
    }

    #[test]
    fn an_absurd_wait_is_cut() {
        for text in [
            "99999999999999999999999999",
            "86401",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ] {
            assert_eq!(wait(text), Some(WAIT_MAX), "{text}");
        }
    }
}

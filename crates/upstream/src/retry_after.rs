//! Reads how long an upstream asks us to stay away.

use std::time::Duration;

/// Longer than any wait that makes sense; also keeps sums of it in bounds.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// `retry-after`: seconds, also with a fraction, as some upstreams send them. A date tells
/// nothing here: it needs a wall clock that agrees with theirs, and these upstreams send none.
pub(crate) fn seconds(value: &[u8]) -> Option<Duration> {
    decimal_ms(value, 3)
}

/// `retry-after-ms`, which says it finer and wins.
pub(crate) fn milliseconds(value: &[u8]) -> Option<Duration> {
    decimal_ms(value, 0)
}

/// A decimal number times ten to the `shift`, as milliseconds; what is finer is rounded up,
/// so that we never come back too early.
fn decimal_ms(value: &[u8], shift: usize) -> Option<Duration> {
    let text = std::str::from_utf8(value.trim_ascii()).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let kept: String = fraction.chars().chain("000".chars()).take(shift).collect();
    let more = fraction.bytes().skip(shift).any(|digit| digit != b'0');
    // Too many digits to count are a very long time.
    let ms = format!("{whole}{kept}").parse::<u64>().unwrap_or(u64::MAX);
    Some(Duration::from_millis(ms.saturating_add(u64::from(more))).min(WAIT_MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{WAIT_MAX, milliseconds, seconds};

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
            assert_eq!(
                seconds(text.as_bytes()),
                Some(Duration::from_millis(ms)),
                "{text}"
            );
        }
        assert_eq!(milliseconds(b"250"), Some(Duration::from_millis(250)));
        assert_eq!(milliseconds(b"0.5"), Some(Duration::from_millis(1)));
    }

    #[test]
    fn what_is_no_number_of_seconds_tells_nothing() {
        for text in [
            "",
            "-1",
            "soon",
            "1e3",
            ".5",
            "5.",
            "Sat, 15 Nov 2025 03:00:00 GMT",
            "\u{663}",
        ] {
            assert_eq!(seconds(text.as_bytes()), None, "{text}");
        }
        assert_eq!(seconds(&[0xff, 0xfe]), None);
    }

    #[test]
    fn an_absurd_wait_is_cut() {
        assert_eq!(seconds(b"99999999999999999999999999"), Some(WAIT_MAX));
        assert_eq!(seconds(b"86401"), Some(WAIT_MAX));
    }
}

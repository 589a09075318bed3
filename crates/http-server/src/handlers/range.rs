//! Reads the headers that request a range of a file or make a request conditional.

use std::ops::Range;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Range(Range<u64>),
    /// The range has no byte in common with the file.
    BeyondEnd,
}

/// Reads the `range` header for a file of this size. For several ranges, other units and malformed values the whole
/// file is sent, as RFC 9110 permits.
pub(super) fn requested_part(range: Option<&str>, bytes: u64) -> Part {
    let spec = range.and_then(|text| text.trim().strip_prefix("bytes="));
    let Some((first, last)) = spec.and_then(|spec| spec.trim().split_once('-')) else {
        return Part::Whole;
    };
    let number = |text: &str| -> Option<Option<u64>> {
        match text.trim() {
            "" => Some(None),
            digits if digits.bytes().all(|it| it.is_ascii_digit()) => {
                // A number that is too large for `u64` is beyond the end of any file.
                Some(Some(digits.parse().unwrap_or(u64::MAX)))
            }
            _ => None,
        }
    };
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        return Part::Whole;
    };
    let range = match (first, last) {
        (None, None) => return Part::Whole,
        (Some(first), Some(last)) if last < first => return Part::Whole,
        (Some(first), Some(last)) => first..bytes.min(last.saturating_add(1)),
        (Some(first), None) => first..bytes,
        (None, Some(suffix)) => bytes.saturating_sub(suffix)..bytes,
    };
    if range.is_empty() {
        Part::BeyondEnd
    } else {
        Part::Range(range)
    }
}

/// Whether `if-none-match` matches the file.
pub(super) fn etag_matches(condition: &str, etag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    condition
        .split(',')
        .any(|tag| tag.trim() == "*" || bare(tag) == bare(etag))
}

/// Whether `if-range` allows a range. The bytes must be identical, so a weak tag never matches.
pub(super) fn range_applies(condition: Option<&str>, etag: &str) -> bool {
    condition.is_none_or(|tag| tag.trim() == etag && !etag.starts_with("W/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_served_and_others_are_not_there() {
        for (text, expected) in [
            ("bytes=0-0", Part::Range(0..1)),
            ("bytes=0-9", Part::Range(0..10)),
            ("bytes=3-5", Part::Range(3..6)),
            ("bytes=3-", Part::Range(3..10)),
            ("bytes= 3 - 5 ", Part::Range(3..6)),
            ("bytes=9-99", Part::Range(9..10)),
            ("bytes=-3", Part::Range(7..10)),
            ("bytes=-99", Part::Range(0..10)),
            ("bytes=0-99999999999999999999999", Part::Range(0..10)),
            ("bytes=10-", Part::BeyondEnd),
            ("bytes=10-20", Part::BeyondEnd),
            ("bytes=-0", Part::BeyondEnd),
            ("bytes=99999999999999999999999-", Part::BeyondEnd),
            ("bytes=5-3", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=", Part::Whole),
            ("bytes=a-b", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("bytes=0-1,3-4", Part::Whole),
            ("bytes=0-1,-1", Part::Whole),
            ("items=0-1", Part::Whole),
            ("0-1", Part::Whole),
        ] {
            assert_eq!(requested_part(Some(text), 10), expected, "{text}");
        }
        assert_eq!(requested_part(None, 10), Part::Whole);
        for text in ["bytes=0-", "bytes=-1", "bytes=0-0"] {
            assert_eq!(requested_part(Some(text), 0), Part::BeyondEnd, "{text}");
        }
    }

    #[test]
    fn conditions_compare_etags() {
        for (condition, etag, matches) in [
            ("\"a\"", "\"a\"", true),
            ("*", "\"a\"", true),
            ("\"b\", \"a\"", "\"a\"", true),
            ("W/\"a\"", "\"a\"", true),
            ("\"a\"", "W/\"a\"", true),
            ("\"b\"", "\"a\"", false),
            ("a", "\"a\"", false),
        ] {
            assert_eq!(etag_matches(condition, etag), matches, "{condition} {etag}");
        }
        for (condition, etag, applies) in [
            (None, "\"a\"", true),
            (Some("\"a\""), "\"a\"", true),
            (Some("\"b\""), "\"a\"", false),
            (Some("W/\"a\""), "W/\"a\"", false),
            (Some("Sun, 15 Nov 2026 00:00:00 GMT"), "\"a\"", false),
        ] {
            assert_eq!(
                range_applies(condition, etag),
                applies,
                "{condition:?} {etag}"
            );
        }
    }
}

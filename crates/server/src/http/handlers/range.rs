//! Which part of a file a request asks for. Pure: header values go in.

use std::ops::Range;

/// What is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Some(Range<u64>),
    /// Nothing of the range is there.
    Outside,
}

/// Reads `range` for a file of `bytes`. One range is served; several, another unit or a text that
/// cannot be read get the whole file, as RFC 9110 leaves to us.
pub(crate) fn asked_part(range: Option<&str>, bytes: u64) -> Part {
    let spec = range.and_then(|text| text.trim().strip_prefix("bytes="));
    let Some((first, last)) = spec.and_then(|spec| spec.trim().split_once('-')) else {
        return Part::Whole;
    };
    let number = |text: &str| -> Option<Option<u64>> {
        match text.trim() {
            "" => Some(None),
            digits if digits.bytes().all(|it| it.is_ascii_digit()) => {
                // What is beyond counting is beyond any file.
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
        Part::Outside
    } else {
        Part::Some(range)
    }
}

/// Whether `if-none-match` names these very bytes.
pub(crate) fn names(condition: &str, etag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    condition
        .split(',')
        .any(|tag| tag.trim() == "*" || bare(tag) == bare(etag))
}

/// Whether a range holds good under `if-range`, which needs the same bytes and no less.
pub(crate) fn range_holds(condition: Option<&str>, etag: &str) -> bool {
    condition.is_none_or(|tag| tag.trim() == etag && !etag.starts_with("W/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_served_and_others_are_not_there() {
        for (text, expected) in [
            ("bytes=0-0", Part::Some(0..1)),
            ("bytes=0-9", Part::Some(0..10)),
            ("bytes=3-5", Part::Some(3..6)),
            ("bytes=3-", Part::Some(3..10)),
            ("bytes= 3 - 5 ", Part::Some(3..6)),
            ("bytes=9-99", Part::Some(9..10)),
            ("bytes=-3", Part::Some(7..10)),
            ("bytes=-99", Part::Some(0..10)),
            ("bytes=0-99999999999999999999999", Part::Some(0..10)),
            ("bytes=10-", Part::Outside),
            ("bytes=10-20", Part::Outside),
            ("bytes=-0", Part::Outside),
            ("bytes=99999999999999999999999-", Part::Outside),
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
            assert_eq!(asked_part(Some(text), 10), expected, "{text}");
        }
        assert_eq!(asked_part(None, 10), Part::Whole);
        for text in ["bytes=0-", "bytes=-1", "bytes=0-0"] {
            assert_eq!(asked_part(Some(text), 0), Part::Outside, "{text}");
        }
    }

    #[test]
    fn conditions_compare_marks() {
        for (condition, etag, is_named) in [
            ("\"a\"", "\"a\"", true),
            ("*", "\"a\"", true),
            ("\"b\", \"a\"", "\"a\"", true),
            ("W/\"a\"", "\"a\"", true),
            ("\"a\"", "W/\"a\"", true),
            ("\"b\"", "\"a\"", false),
            ("a", "\"a\"", false),
        ] {
            assert_eq!(names(condition, etag), is_named, "{condition} {etag}");
        }
        for (condition, etag, holds) in [
            (None, "\"a\"", true),
            (Some("\"a\""), "\"a\"", true),
            (Some("\"b\""), "\"a\"", false),
            (Some("W/\"a\""), "W/\"a\"", false),
            (Some("Sun, 15 Nov 2026 00:00:00 GMT"), "\"a\"", false),
        ] {
            assert_eq!(range_holds(condition, etag), holds, "{condition:?} {etag}");
        }
    }
}

//! A JSON value as a slice of its text, with its position.

use std::ops::Range;

use super::scan::Shape;
use super::text::Text;

/// A valid value: its bytes and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw<'a> {
    text: &'a str,
    at: usize,
    /// Whether the value is a string with escapes.
    escaped: bool,
}

/// Any number with this many digits fits into 64 bits.
const SHORT_DIGITS: usize = 19;

/// An integer. Values that do not fit into `u64` are only classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Integer {
    Negative,
    Value(u64),
    /// Above `u64`.
    Huge,
}

impl Integer {
    pub(crate) fn saturating(self) -> u64 {
        match self {
            Self::Negative => 0,
            Self::Value(value) => value,
            Self::Huge => u64::MAX,
        }
    }
}

impl<'a> Raw<'a> {
    pub(super) fn new(text: &'a str, at: usize, escaped: bool) -> Self {
        Self { text, at, escaped }
    }

    /// The value with its position moved by `offset` bytes, for use with a text that encloses it.
    pub(crate) fn moved(self, offset: usize) -> Self {
        Self {
            at: self.at.saturating_add(offset),
            ..self
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn span(&self) -> Range<usize> {
        self.at..self.at.saturating_add(self.text.len())
    }

    pub(crate) fn shape(&self) -> Shape {
        let first = self.text.bytes().next();
        first.and_then(Shape::of).unwrap_or(Shape::Null)
    }

    /// Whether the value is `null`, which means absent everywhere.
    pub(crate) fn is_null(&self) -> bool {
        self.shape() == Shape::Null
    }

    /// Whether the value is an object, array or string without content.
    pub(crate) fn is_empty(&self) -> bool {
        match self.shape() {
            Shape::String | Shape::Array | Shape::Object => {
                let inside = self.text.get(1..self.text.len().saturating_sub(1));
                // A string of spaces is not empty.
                inside.is_none_or(|inside| match self.shape() {
                    Shape::String => inside.is_empty(),
                    _ => inside.trim_ascii().is_empty(),
                })
            }
            Shape::Number | Shape::Boolean | Shape::Null => false,
        }
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        match self.text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The inside of a string.
    pub(crate) fn string(&self) -> Option<Text<'a>> {
        // The value is valid, so a string starts and ends with a quote.
        let inside = self.text.strip_prefix('"')?.strip_suffix('"')?;
        Some(Text::new(inside, self.at.saturating_add(1), self.escaped))
    }

    /// The value of an unsigned integer with few digits, as most numbers are.
    fn short_count(&self) -> Option<u64> {
        if self.text.len() > SHORT_DIGITS {
            return None;
        }
        self.text.bytes().try_fold(0, |value, byte| {
            let digit = byte.wrapping_sub(b'0');
            (digit < 10).then(|| value * 10 + u64::from(digit))
        })
    }

    /// An integer, also in the form `10.0`. No float is involved, so nothing is rounded.
    pub(crate) fn integer(&self) -> Option<Integer> {
        if self.shape() != Shape::Number {
            return None;
        }
        if let Some(value) = self.short_count() {
            return Some(Integer::Value(value));
        }
        let (negative, digits) = match self.text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, self.text),
        };
        let whole = match digits.split_once('.') {
            Some((whole, fraction)) if fraction.bytes().all(|byte| byte == b'0') => whole,
            Some(_) => return None,
            None => digits,
        };
        if !whole.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let zero = whole.bytes().all(|byte| byte == b'0');
        Some(match whole.parse() {
            Ok(_) if negative && !zero => Integer::Negative,
            Ok(value) => Integer::Value(value),
            Err(_) if negative => Integer::Negative,
            Err(_) => Integer::Huge,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_without_floats() {
        for (text, integer) in [
            ("0", Some(Integer::Value(0))),
            ("-0", Some(Integer::Value(0))),
            ("42", Some(Integer::Value(42))),
            ("42.000", Some(Integer::Value(42))),
            ("42.5", None),
            ("4e2", None),
            ("-1", Some(Integer::Negative)),
            ("-99999999999999999999", Some(Integer::Negative)),
            ("18446744073709551615", Some(Integer::Value(u64::MAX))),
            ("18446744073709551616", Some(Integer::Huge)),
            ("\"1\"", None),
            ("true", None),
            ("null", None),
        ] {
            assert_eq!(Raw::new(text, 0, false).integer(), integer, "{text}");
        }
    }

    #[test]
    fn emptiness_is_seen_through_white_space() {
        for (text, empty) in [
            ("[]", true),
            ("[ \n ]", true),
            ("{ }", true),
            ("\"\"", true),
            ("\" \"", false),
            ("[0]", false),
            ("0", false),
            ("false", false),
        ] {
            assert_eq!(Raw::new(text, 0, false).is_empty(), empty, "{text}");
        }
    }

    #[test]
    fn a_string_knows_its_place_in_the_whole_text() {
        let text = Raw::new("\"abc\"", 10, false).string().unwrap();
        assert_eq!(text.span(), 11..14);
    }
}

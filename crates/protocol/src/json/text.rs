//! Decodes and writes JSON strings.

use std::borrow::Cow;
use std::ops::Range;

use super::lex::plain_length;

/// The inside of a valid JSON string, and its position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    raw: &'a str,
    at: usize,
    escaped: bool,
}

/// A string contains half a character (`"\ud800"`). It can be passed on but not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the string has a lone surrogate")]
pub(crate) struct LoneSurrogate;

impl<'a> Text<'a> {
    pub(super) fn new(raw: &'a str, at: usize, escaped: bool) -> Self {
        Self { raw, at, escaped }
    }

    /// The bytes between the quotes, including escapes.
    pub(crate) fn raw(&self) -> &'a str {
        self.raw
    }

    /// The position of the bytes between the quotes.
    pub(crate) fn span(&self) -> Range<usize> {
        self.at..self.at.saturating_add(self.raw.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    pub(crate) fn is_escaped(&self) -> bool {
        self.escaped
    }

    /// Whether the string decodes to `text`.
    pub(crate) fn is(&self, text: &str) -> bool {
        if self.escaped {
            self.decode().is_ok_and(|decoded| decoded == text)
        } else {
            self.raw == text
        }
    }

    /// Decodes the string. Borrowed if it has no escapes.
    pub(crate) fn decode(&self) -> Result<Cow<'a, str>, LoneSurrogate> {
        if !self.escaped {
            return Ok(Cow::Borrowed(self.raw));
        }
        self.decode_with(|c| c.ok_or(LoneSurrogate)).map(Cow::Owned)
    }

    /// Decodes the string, with a replacement character for each half of a character.
    pub(crate) fn decode_lossy(&self) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let decoded = self.decode_with(|c| Ok(c.unwrap_or(REPLACEMENT)));
        Cow::Owned(decoded.unwrap_or_default())
    }

    fn decode_with(
        &self,
        mut escape: impl FnMut(Option<char>) -> Result<char, LoneSurrogate>,
    ) -> Result<String, LoneSurrogate> {
        let mut decoded = String::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some((plain, after)) = rest.split_once('\\') {
            decoded.push_str(plain);
            let (c, length) = unescape(after.as_bytes());
            decoded.push(escape(c)?);
            rest = after.get(length..).unwrap_or_default();
        }
        decoded.push_str(rest);
        Ok(decoded)
    }
}

/// Replaces half a character.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// Decodes the escape after a backslash and returns its character and its length. The character is
/// `None` if the escape is a lone surrogate. The escape must be valid.
pub(crate) fn unescape(after: &[u8]) -> (Option<char>, usize) {
    let Some(&letter) = after.first() else {
        return (None, 0);
    };
    let c = match letter {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return unescape_unit(after),
        other => char::from(other),
    };
    (Some(c), 1)
}

fn unescape_unit(after: &[u8]) -> (Option<char>, usize) {
    let Some(high) = hex_unit(after.get(1..5)) else {
        return (None, after.len().min(5));
    };
    if !(0xd800..0xe000).contains(&high) {
        return (char::from_u32(high), 5);
    }
    let low = match after.get(5..7) {
        Some(b"\\u") => hex_unit(after.get(7..11)),
        _ => None,
    };
    match low {
        Some(low) if high < 0xdc00 && (0xdc00..0xe000).contains(&low) => {
            let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(code), 11)
        }
        _ => (None, 5),
    }
}

fn hex_unit(digits: Option<&[u8]>) -> Option<u32> {
    digits?.iter().try_fold(0, |unit, digit| {
        Some((unit << 4) | char::from(*digit).to_digit(16)?)
    })
}

/// The number of bytes before the closing quote, or all of them if the string is not closed. `inside`
/// starts after the opening quote.
pub(crate) fn string_length(inside: &[u8]) -> usize {
    let mut from = 0;
    while let Some(at) = memchr::memchr(b'"', inside.get(from..).unwrap_or_default()) {
        let quote = from + at;
        let before = inside.get(..quote).unwrap_or_default();
        let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\');
        if backslashes.count() % 2 == 0 {
            return quote;
        }
        from = quote + 1;
    }
    inside.len()
}

/// Writes `text` as a JSON string.
///
/// U+0085, U+2028 and U+2029 are escaped too, because some clients split event-stream lines there.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text;
    loop {
        let (plain, odd) = rest
            .split_at_checked(plain_length(rest.as_bytes()))
            .unwrap_or((rest, ""));
        out.extend_from_slice(plain.as_bytes());
        let mut chars = odd.chars();
        let Some(c) = chars.next() else {
            break;
        };
        rest = chars.as_str();
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                write_unit(out, u32::from(c));
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

fn write_unit(out: &mut Vec<u8>, unit: u32) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        let digit = char::from_digit((unit >> shift) & 0xf, 16).unwrap_or('0');
        out.extend_from_slice(digit.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(raw: &str) -> Text<'_> {
        Text::new(raw, 1, raw.contains('\\'))
    }

    #[test]
    fn escapes_are_decoded() {
        for (raw, decoded) in [
            ("plain", Ok("plain")),
            (r"mod\u0065l", Ok("model")),
            (r#"\"\\\/\b\f\n\r\t"#, Ok("\"\\/\u{8}\u{c}\n\r\t")),
            (r"\ud83d\ude00!", Ok("😀!")),
            (r"\ud83d", Err(LoneSurrogate)),
            (r"\ud83d\u0041", Err(LoneSurrogate)),
            (r"\ude00", Err(LoneSurrogate)),
            (r"a\u00e9b", Ok("aéb")),
        ] {
            assert_eq!(text(raw).decode().as_deref(), decoded.as_ref().map(|d| *d));
        }
        assert!(text(r"mod\u0065l").is("model"));
        assert!(!text(r"\ud83d").is("model"));
    }

    #[test]
    fn strings_end_at_the_first_quote_that_is_not_escaped() {
        for (inside, length) in [
            (r#"" rest"#, 0),
            (r#"ab" "c""#, 2),
            (r#"a\"b" c"#, 4),
            (r#"a\\"b" c"#, 3),
            (r#"\\\"x"#, 5),
            ("open", 4),
            ("", 0),
        ] {
            assert_eq!(string_length(inside.as_bytes()), length, "{inside}");
        }
    }

    #[test]
    fn line_ends_of_careless_clients_are_escaped() {
        let mut out = Vec::new();
        write_string(&mut out, "a\u{85}b\u{2028}c\u{2029}d\u{0}\n");
        assert_eq!(out, br#""a\u0085b\u2028c\u2029d\u0000\n""#);
    }

    proptest! {
        #[test]
        fn written_values_read_back(original in any::<String>()) {
            let mut out = Vec::new();
            write_string(&mut out, &original);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), original.clone());
            let raw = std::str::from_utf8(&out[1..out.len() - 1]).unwrap();
            prop_assert_eq!(text(raw).decode().unwrap(), original);
        }
    }
}

//! The simulated tokenizer: a fixed rule that splits a text into tokens.
//!
//! A token is up to six letters (three outside ASCII), up to three digits, up to four line breaks, or
//! one other character, each with the space before it. Usage, limits and stream chunks all use this
//! rule, so they agree exactly.

use serde_json::Value;
use std::sync::Arc;

/// The maximum number of letters per token; longer words are several tokens.
const ASCII_LETTERS_MAX: usize = 6;
/// The maximum number of letters per token outside ASCII, where real tokenizers create shorter tokens.
const WIDE_LETTERS_MAX: usize = 3;
const DIGITS_MAX: usize = 3;
const BREAKS_MAX: usize = 4;

/// The number of tokens in a text.
pub fn count_tokens(text: &str) -> u64 {
    let mut rest = text;
    let mut count = 0;
    while !rest.is_empty() {
        rest = rest.get(first_len(rest)..).unwrap_or_default();
        count += 1;
    }
    count
}

/// The number of tokens in the strings of a JSON value, at any depth.
pub(crate) fn count_in(value: &Value) -> u64 {
    match value {
        Value::String(text) => count_tokens(text),
        Value::Array(items) => items.iter().map(count_in).sum(),
        Value::Object(members) => members.values().map(count_in).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// The length of the first token in bytes. It is 0 only for an empty text.
pub(crate) fn first_len(text: &str) -> usize {
    let body = text.strip_prefix(' ').unwrap_or(text);
    let space = text.len() - body.len();
    let Some(first) = body.chars().next() else {
        return space;
    };
    if first == ' ' {
        // A single space belongs to the token after it. Each additional space is a token.
        return space;
    }
    space + run_len(body, first)
}

fn run_len(body: &str, first: char) -> usize {
    let (kind, max): (fn(char) -> bool, usize) = match first {
        'a'..='z' | 'A'..='Z' => (|c| c.is_ascii_alphabetic(), ASCII_LETTERS_MAX),
        '0'..='9' => (|c| c.is_ascii_digit(), DIGITS_MAX),
        '\n' | '\r' => (|c| c == '\n' || c == '\r', BREAKS_MAX),
        c if is_dense(c) => return c.len_utf8(),
        c if c.is_alphabetic() => (
            |c| c.is_alphabetic() && !c.is_ascii() && !is_dense(c),
            WIDE_LETTERS_MAX,
        ),
        c => return c.len_utf8(),
    };
    body.chars()
        .take(max)
        .take_while(|c| kind(*c))
        .map(char::len_utf8)
        .sum()
}

/// Whether a character belongs to a script that is written without spaces. Each such character is a token.
fn is_dense(c: char) -> bool {
    matches!(u32::from(c), 0x2E80..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x2_0000..=0x3_FFFF)
}

/// Cuts a text after `tokens_max` tokens. The second value is the number of tokens in the returned text.
pub(crate) fn cut(text: &str, tokens_max: u64) -> (&str, u64) {
    let mut end = 0;
    let mut count = 0;
    while count < tokens_max && end < text.len() {
        end += first_len(text.get(end..).unwrap_or_default());
        count += 1;
    }
    (text.get(..end).unwrap_or(text), count)
}

/// Iterates over the tokens of a shared text without borrowing it, so that a stream can own the
/// iterator.
#[derive(Debug, Clone)]
pub(crate) struct TokenIterator {
    text: Arc<str>,
    at: usize,
}

impl TokenIterator {
    pub(crate) fn new(text: Arc<str>) -> Self {
        Self { text, at: 0 }
    }

    /// The byte position in the text.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn token(&mut self) -> Option<&str> {
        self.token_before(usize::MAX)
    }

    /// The next token, cut if it would extend beyond `place`.
    pub(crate) fn token_before(&mut self, place: usize) -> Option<&str> {
        let len = first_len(self.text.get(self.at..)?);
        self.bytes(len.min(place.saturating_sub(self.at)))
    }

    /// The next `len` bytes, extended to a character boundary.
    pub(crate) fn bytes(&mut self, len: usize) -> Option<&str> {
        let start = self.at;
        let mut end = start.saturating_add(len).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        self.at = end;
        self.text.get(start..end).filter(|piece| !piece.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<&str> {
        let mut rest = text;
        let mut found = Vec::new();
        while !rest.is_empty() {
            let (token, after) = rest.split_at(first_len(rest));
            found.push(token);
            rest = after;
        }
        found
    }

    #[test]
    fn text_is_cut_at_words_digits_and_signs() {
        for (text, expected) in [
            ("", vec![]),
            ("Hello, world!", vec!["Hello", ",", " world", "!"]),
            ("understanding", vec!["unders", "tandin", "g"]),
            ("12345", vec!["123", "45"]),
            ("a  b", vec!["a", " ", " b"]),
            ("x ", vec!["x", " "]),
            ("世界", vec!["世", "界"]),
            ("привет", vec!["при", "вет"]),
            ("one\n\ntwo", vec!["one", "\n\n", "two"]),
        ] {
            assert_eq!(tokens(text), expected, "{text:?}");
            assert_eq!(count_tokens(text), expected.len() as u64, "{text:?}");
        }
    }

    #[test]
    fn a_cut_keeps_whole_tokens() {
        assert_eq!(cut("one two three", 2), ("one two", 2));
        assert_eq!(cut("one", 5), ("one", 1));
        assert_eq!(cut("one", 0), ("", 0));
    }

    #[test]
    fn a_walk_visits_every_byte_once() {
        let text: Arc<str> = "Grüße, 世界 – 2026!".into();
        let mut walk = TokenIterator::new(Arc::clone(&text));
        let mut joined = String::new();
        while let Some(token) = walk.token() {
            joined.push_str(token);
        }
        assert_eq!(joined, *text);

        let mut walk = TokenIterator::new(Arc::clone(&text));
        assert_eq!(walk.bytes(3), Some("Grü"));
        assert_eq!(walk.bytes(usize::MAX), Some("ße, 世界 – 2026!"));
        assert_eq!(walk.bytes(1), None);
    }
}

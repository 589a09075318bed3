//! Estimates the tokens of a plain text.
//!
//! Every model has its own tokenizer, and none is available before the call. In all of them a word, a few
//! digits or a punctuation mark is about one token, and a Chinese character is a little less. So each byte adds
//! a fixed cost by its class, and the first byte of each word adds the cost of a new token. The count skips no
//! byte, because a client could hide a prompt in skipped bytes.
//!
//! The cost of a byte depends only on itself and on the byte before it. So the count does not depend on how a
//! text is split, and ASCII text is counted 64 bytes at a time ([`super::ascii`]).

use fearless_simd::{Level, dispatch};

use super::ascii;
use super::json::BYTES_PER_TOKEN_MAX;
use crate::json::text::unescape;

/// One token, in the units in which costs are summed.
const TOKEN: u64 = 64;

/// The costs of bytes, in parts of a token.
///
/// The values are fitted to a byte-pair tokenizer of 200,000 tokens on prose, code, JSON and texts
/// in several scripts (`fixtures/count/README.md`). No character costs less than six parts per
/// byte, so that plain text never counts below one token for [`BYTES_PER_TOKEN_MAX`] bytes.
pub(super) mod cost {
    /// The first byte of a word: a letter, or any byte of a character outside ASCII.
    pub(in crate::count) const WORD: u8 = 34;
    pub(in crate::count) const LOWER: u8 = 7;
    pub(in crate::count) const UPPER: u8 = 21;
    pub(in crate::count) const SPACE: u8 = 7;
    /// Digits, signs, line breaks and control characters.
    pub(in crate::count) const SIGN: u8 = 34;
    /// Two bytes: accented Latin, Greek, Cyrillic, Hebrew, Arabic.
    pub(in crate::count) const LETTER: u8 = 13;
    /// Other characters of three bytes: Indic scripts, Thai, typographic signs.
    pub(in crate::count) const SCRIPT: u8 = 18;
    /// Chinese characters and Japanese kana.
    pub(in crate::count) const HAN: u8 = 49;
    pub(in crate::count) const HANGUL: u8 = 33;
    /// Four bytes: emoji and rare scripts.
    pub(in crate::count) const RARE: u8 = 96;
}

/// Estimates the tokens of a text.
pub fn tokens(text: &[u8]) -> u64 {
    let mut counter = Counter::default();
    counter.add(text);
    counter.tokens()
}

/// Counts a text that arrives in pieces.
#[derive(Debug, Clone, Default)]
pub struct Counter {
    parts: u64,
    /// The bytes that were added. Escapes count with all their bytes.
    bytes: u64,
    /// Whether the last byte belongs to a word.
    in_word: bool,
    is_idle: bool,
}

impl Counter {
    /// A counter that ignores its input, because the count comes from elsewhere.
    pub(crate) fn idle() -> Self {
        Self {
            is_idle: true,
            ..Self::default()
        }
    }

    /// The tokens so far, rounded up.
    pub fn tokens(&self) -> u64 {
        let floor = self.bytes.div_ceil(BYTES_PER_TOKEN_MAX);
        self.parts.div_ceil(TOKEN).max(floor)
    }

    /// Adds plain text.
    pub fn add(&mut self, text: &[u8]) {
        if self.is_idle {
            return;
        }
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        let mut rest = text;
        while !rest.is_empty() {
            let behind = self.add_ascii::<false>(rest);
            let (slow, next) = behind.split_at(behind.len().min(SLOW_BYTES));
            self.add_bytes(slow);
            rest = next;
        }
    }

    /// Adds the inside of a JSON string.
    pub(crate) fn add_string(&mut self, raw: &[u8]) {
        if self.is_idle {
            return;
        }
        self.bytes = self.bytes.saturating_add(raw.len() as u64);
        let mut rest = raw;
        // Most strings of a request are names and short words. Counting them byte by byte is faster.
        if rest.len() <= SHORT_BYTES {
            rest = self.add_escaped(rest);
        }
        while !rest.is_empty() {
            let behind = self.add_ascii::<true>(rest);
            rest = self.add_escaped(behind);
        }
    }

    /// Adds the inside of a JSON string without escapes, which does not continue the text
    /// before it.
    pub(super) fn add_separate_plain(&mut self, text: &[u8]) {
        self.in_word = false;
        if text.len() <= SHORT_BYTES && !self.is_idle {
            self.bytes = self.bytes.saturating_add(text.len() as u64);
            self.add_bytes(text);
        } else {
            self.add(text);
        }
    }

    /// Adds the inside of a JSON string that does not continue the text before it.
    pub(super) fn add_separate(&mut self, raw: &[u8]) {
        self.in_word = false;
        self.add_string(raw);
    }

    /// Adds the leading ASCII bytes, and returns the bytes after them. With `ESCAPES` the text is
    /// the inside of a JSON string that does not start within an escape.
    fn add_ascii<'a, const ESCAPES: bool>(&mut self, text: &'a [u8]) -> &'a [u8] {
        let in_word = self.in_word;
        let run = dispatch!(Level::new(), simd => ascii::count::<_, ESCAPES>(simd, text, in_word));
        self.parts = self.parts.saturating_add(run.parts);
        self.in_word = run.in_word;
        text.get(run.end..).unwrap_or_default()
    }

    fn add_bytes(&mut self, text: &[u8]) {
        let mut parts: u64 = 0;
        for byte in text {
            let cost = COSTS[usize::from(*byte)];
            let start = if self.in_word { 0 } else { cost.start };
            parts += u64::from(cost.own + start);
            self.in_word = cost.start != 0;
        }
        self.parts = self.parts.saturating_add(parts);
    }

    /// Adds some bytes of the inside of a JSON string one by one, and returns the bytes after them.
    fn add_escaped<'a>(&mut self, raw: &'a [u8]) -> &'a [u8] {
        let mut at = 0;
        while at < SLOW_BYTES {
            match raw.get(at) {
                None => break,
                Some(b'\\') => {
                    let after = raw.get(at + 1..).unwrap_or_default();
                    let (c, length) = unescape(after);
                    let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
                    self.add_bytes(c.encode_utf8(&mut [0; 4]).as_bytes());
                    at += 1 + length.max(1);
                }
                Some(byte) => {
                    self.add_bytes(&[*byte]);
                    at += 1;
                }
            }
        }
        raw.get(at..).unwrap_or_default()
    }
}

/// This many bytes are counted one by one before the vector code is tried again.
const SLOW_BYTES: usize = 63;
/// Strings up to this length are counted byte by byte.
const SHORT_BYTES: usize = 16;

/// The cost of a byte, and its additional cost at the start of a word. The additional cost is `cost::WORD`,
/// or 0 if the byte cannot start a word.
#[derive(Clone, Copy)]
struct Cost {
    own: u8,
    start: u8,
}

const COSTS: [Cost; 256] = {
    let mut costs = [Cost { own: 0, start: 0 }; 256];
    let mut byte: u8 = 0;
    loop {
        let is_word = byte.is_ascii_alphabetic() || !byte.is_ascii();
        costs[byte as usize] = Cost {
            own: own_cost(byte),
            start: if is_word { cost::WORD } else { 0 },
        };
        if byte == u8::MAX {
            break costs;
        }
        byte += 1;
    }
};

/// A character outside ASCII is counted at its first byte.
const fn own_cost(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => cost::LOWER,
        b'A'..=b'Z' => cost::UPPER,
        b' ' => cost::SPACE,
        0x00..=0x7f => cost::SIGN,
        0x80..=0xbf => 0,
        0xc0..=0xdf => cost::LETTER,
        0xe3..=0xe9 => cost::HAN,
        0xea..=0xed => cost::HANGUL,
        0xe0..=0xef => cost::SCRIPT,
        0xf0..=0xff => cost::RARE,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts, and their token counts by a real tokenizer (`fixtures/count/README.md`).
    const MEASURED: [(&str, u64); 16] = [
        (include_str!("../../fixtures/count/prose.txt"), 226),
        (include_str!("../../fixtures/count/prose_long.txt"), 1024),
        (include_str!("../../fixtures/count/code.txt"), 249),
        (include_str!("../../fixtures/count/code_long.txt"), 1012),
        (include_str!("../../fixtures/count/python.txt"), 634),
        (include_str!("../../fixtures/count/javascript.txt"), 586),
        (include_str!("../../fixtures/count/json.txt"), 247),
        (include_str!("../../fixtures/count/json_long.txt"), 1782),
        (include_str!("../../fixtures/count/chinese.txt"), 189),
        (include_str!("../../fixtures/count/chinese_long.txt"), 576),
        (include_str!("../../fixtures/count/japanese.txt"), 216),
        (include_str!("../../fixtures/count/korean.txt"), 142),
        (include_str!("../../fixtures/count/russian.txt"), 135),
        (include_str!("../../fixtures/count/german.txt"), 107),
        (include_str!("../../fixtures/count/spanish.txt"), 103),
        (include_str!("../../fixtures/count/arabic.txt"), 95),
    ];

    #[test]
    fn estimates_are_within_fifteen_percent_of_a_tokenizer() {
        for (text, measured) in MEASURED {
            let estimate = tokens(text.as_bytes());
            let off = estimate.abs_diff(measured) * 1000 / measured;
            assert!(off <= 150, "{estimate} for {measured}: {text}");
        }
    }

    /// The cost of a text byte by byte, without the vector code.
    fn parts_one_by_one(text: &[u8]) -> u64 {
        let mut counter = Counter::default();
        counter.add_bytes(text);
        counter.parts
    }

    #[test]
    fn long_texts_are_counted_whole() {
        for (text, _) in MEASURED {
            let long = text.repeat(200);
            let mut counter = Counter::default();
            counter.add(long.as_bytes());
            assert_eq!(counter.parts, parts_one_by_one(long.as_bytes()));
        }
    }

    #[test]
    fn text_cannot_be_hidden_between_blanks() {
        // A prompt of two megabytes whose words are all outside the positions that a fixed sample
        // would check.
        let dense = "word ".repeat(25_000);
        let text = format!("{}{dense}", " ".repeat(16_000)).repeat(16);
        assert!(tokens(text.as_bytes()) > 16 * 20_000);
    }

    proptest! {
        #[test]
        fn vectors_count_as_single_bytes_do(
            text in "([a-zA-Z ]{0,40}|[0-9.,;\n@\\[`{]{0,9}|[界éп😀]{0,3}){0,12}",
        ) {
            let mut counter = Counter::default();
            counter.add(text.as_bytes());
            prop_assert_eq!(counter.parts, parts_one_by_one(text.as_bytes()));
        }

        #[test]
        fn an_escaped_text_counts_as_what_it_says(
            text in "([a-zA-Z ]{0,40}|[\"\\\\\n\t/u]{0,4}|[0-9.,;é界😀]{0,3}){0,12}",
            is_ascii in any::<bool>(),
        ) {
            let mut raw = serde_json::to_string(&text).unwrap();
            if is_ascii {
                let escape = |unit: &u16| format!("\\u{unit:04x}");
                let escaped = |c: char| {
                    if c.is_ascii() {
                        return c.to_string();
                    }
                    c.encode_utf16(&mut [0; 2]).iter().map(escape).collect()
                };
                raw = raw.chars().map(escaped).collect();
            }
            let inside = &raw[1..raw.len() - 1];
            let mut whole = Counter::default();
            whole.add_string(inside.as_bytes());
            prop_assert_eq!(whole.parts, parts_one_by_one(text.as_bytes()), "{}", raw);
        }

        #[test]
        fn a_string_without_escapes_counts_the_same_when_none_are_looked_for(
            before in "[a-z ]{0,3}",
            text in "[a-zA-Z0-9 .,;\n界éп😀]{0,90}",
        ) {
            let mut counters = [Counter::default(), Counter::default()];
            let [plain, escaped] = &mut counters;
            plain.add(before.as_bytes());
            plain.add_separate_plain(text.as_bytes());
            escaped.add(before.as_bytes());
            escaped.add_separate(text.as_bytes());
            prop_assert_eq!((plain.parts, plain.bytes), (escaped.parts, escaped.bytes));
            prop_assert_eq!(plain.in_word, escaped.in_word);
        }

        #[test]
        fn a_text_counts_the_same_however_it_was_cut(
            text in "[a-zA-Z0-9 .,;\n界éп😀]{0,60}",
            cut in 0_usize..200,
        ) {
            let bytes = text.as_bytes();
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            let mut counter = Counter::default();
            counter.add(head);
            counter.add(tail);
            prop_assert_eq!(counter.tokens(), tokens(bytes));
        }

        #[test]
        fn no_text_counts_below_its_floor(text in any::<String>(), times in 1_usize..40) {
            let text = text.repeat(times);
            let parts = parts_one_by_one(text.as_bytes());
            // The costs of the characters alone reach the lower bound.
            prop_assert!(parts * BYTES_PER_TOKEN_MAX >= text.len() as u64 * TOKEN);
        }

        #[test]
        fn any_bytes_can_be_counted(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(tokens(&bytes) * BYTES_PER_TOKEN_MAX >= bytes.len() as u64);
        }
    }
}

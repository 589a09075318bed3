//! Estimates how many tokens a text is, without a tokenizer.
//!
//! Every model has its own tokenizer, and none is at hand before the call; what holds for all of
//! them is that a short word, a few digits or a few signs make a token, and a Chinese character
//! most of one. The estimate walks through classes of characters with one table. It looks at the
//! first byte of each character alone and carries its state from piece to piece, so that a text
//! counts the same however it was cut.

use crate::json::scan::Strings;
use crate::json::text::unescape;
use crate::json::{Cursor, Raw, Text};

/// What an image or another medium counts as an input, whatever its size.
pub const MEDIUM_TOKENS: u64 = 1_600;

/// One token, in the parts that are added up.
const TOKEN: u64 = 64;
/// Texts above this length are sampled: the estimate must stay cheap beside moving the bytes.
const WHOLE_BYTES_MAX: usize = 16 << 10;
const SAMPLES: usize = 16;
const SAMPLE_BYTES: usize = 768;

/// Strings of one JSON text that are all counted; of the rest one in so many.
const STRINGS_BYTES_MAX: u64 = 48 << 10;
const STRINGS_SKIPPED: u64 = 16;

/// From this length on a string that could be base64 is taken for it.
const BASE64_BYTES_MIN: usize = 256;

/// Members that hold media or point to them.
const MEDIA_KEYS: [&[u8]; 11] = [
    b"url",
    b"image_url",
    b"file_url",
    b"uri",
    b"file_uri",
    b"fileUri",
    b"data",
    b"file_data",
    b"b64_json",
    b"bytesBase64Encoded",
    b"image",
];

/// Estimates the tokens of a text.
pub fn tokens(text: &[u8]) -> u64 {
    parts(text, Counter::add).div_ceil(TOKEN)
}

/// Estimates the tokens of a JSON value that was checked before; see [`JsonCounter`].
pub(crate) fn tokens_in(value: Raw<'_>) -> u64 {
    let mut counter = JsonCounter::default();
    // A value that was checked has no error.
    let _ = Cursor::new(value.text()).value_shown_to(&mut counter);
    counter.tokens()
}

/// Estimates the tokens of JSON values by their strings, names included: they weigh about what the
/// marks around messages and tools do. An image, given or pointed to, counts [`MEDIUM_TOKENS`].
#[derive(Debug, Default)]
pub(crate) struct JsonCounter {
    media: u64,
    parts: u64,
    counted_bytes: u64,
    skipped_bytes: u64,
    strings: u64,
    /// Whether the value behind the last name may be a medium.
    media_name: bool,
}

impl JsonCounter {
    /// The tokens of what was shown.
    pub(crate) fn tokens(&self) -> u64 {
        let bytes = self.counted_bytes.saturating_add(self.skipped_bytes);
        scaled(self.parts, bytes, self.counted_bytes)
            .div_ceil(TOKEN)
            .saturating_add(self.media)
    }

    fn add(&mut self, text: Text<'_>) {
        let length = text.raw().len() as u64;
        self.strings = self.strings.wrapping_add(1);
        if self.counted_bytes > STRINGS_BYTES_MAX && !self.strings.is_multiple_of(STRINGS_SKIPPED) {
            self.skipped_bytes = self.skipped_bytes.saturating_add(length);
            return;
        }
        self.counted_bytes = self.counted_bytes.saturating_add(length);
        let parts = parts(text.raw().as_bytes(), Counter::add_escaped);
        self.parts = self.parts.saturating_add(parts);
    }
}

impl Strings<'_> for JsonCounter {
    fn name(&mut self, name: Text<'_>) {
        self.media_name = MEDIA_KEYS.contains(&name.raw().as_bytes());
        self.add(name);
    }

    fn string(&mut self, text: Text<'_>) {
        if self.media_name && is_medium(text.raw().as_bytes()) {
            self.media = self.media.saturating_add(MEDIUM_TOKENS);
        } else {
            self.add(text);
        }
    }
}

/// Counts a text, or samples of it if it is long.
fn parts(text: &[u8], add: fn(&mut Counter, &[u8])) -> u64 {
    let mut counter = Counter::default();
    if text.len() <= WHOLE_BYTES_MAX {
        add(&mut counter, text);
        return counter.parts;
    }
    let mut sampled: u64 = 0;
    for stretch in text.chunks(text.len() / SAMPLES).take(SAMPLES) {
        let sample = stretch.get(..SAMPLE_BYTES).unwrap_or(stretch);
        sampled = sampled.saturating_add(sample.len() as u64);
        add(&mut counter, sample);
    }
    scaled(counter.parts, text.len() as u64, sampled)
}

/// What `sampled` bytes cost, for `whole` bytes.
fn scaled(parts: u64, whole: u64, sampled: u64) -> u64 {
    let product = u128::from(parts) * u128::from(whole);
    u64::try_from(product.div_ceil(u128::from(sampled.max(1)))).unwrap_or(u64::MAX)
}

fn is_medium(value: &[u8]) -> bool {
    const POINTERS: [&[u8]; 4] = [b"data:", b"http://", b"https://", b"gs://"];
    let start = value.get(..BASE64_BYTES_MIN);
    POINTERS.iter().any(|pointer| value.starts_with(pointer))
        || start.is_some_and(|start| start.iter().all(|byte| is_base64(*byte)))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_' | b'\\')
}

/// Counts a text that comes in pieces.
#[derive(Debug, Clone, Default)]
pub struct Counter {
    parts: u64,
    state: u8,
    is_idle: bool,
}

impl Counter {
    /// One that lets texts pass by: what it would count is told by somebody else.
    pub(crate) fn idle() -> Self {
        Self {
            is_idle: true,
            ..Self::default()
        }
    }

    /// The tokens so far; a part of one counts as one.
    pub fn tokens(&self) -> u64 {
        self.parts.div_ceil(TOKEN)
    }

    /// Adds plain text.
    pub fn add(&mut self, text: &[u8]) {
        if self.is_idle {
            return;
        }
        let mut state = self.state;
        let mut parts: u64 = 0;
        for byte in text {
            let class = CLASSES[usize::from(*byte)];
            let step = STEPS[usize::from(state)][class as usize];
            parts += u64::from(step.cost);
            state = step.state;
        }
        self.state = state;
        self.parts = self.parts.saturating_add(parts);
    }

    /// Adds the inside of a JSON string, or a sample of it if it is long.
    pub fn add_string(&mut self, raw: &[u8]) {
        if self.is_idle {
            return;
        }
        if raw.len() <= WHOLE_BYTES_MAX {
            self.add_escaped(raw);
        } else {
            self.parts = self.parts.saturating_add(parts(raw, Self::add_escaped));
        }
    }

    fn add_escaped(&mut self, raw: &[u8]) {
        let mut rest = raw;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            let (plain, escape) = rest.split_at(at);
            self.add(plain);
            let after = escape.get(1..).unwrap_or_default();
            let (c, length) = unescape(after);
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.add(c.encode_utf8(&mut [0; 4]).as_bytes());
            rest = after.get(length.max(1)..).unwrap_or_default();
        }
        self.add(rest);
    }
}

/// Characters that tokenizers treat alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Class {
    Space,
    Line,
    Lower,
    Upper,
    Digit,
    Sign,
    /// Letters of two bytes: accented Latin, Greek, Cyrillic, Hebrew, Arabic.
    Letter,
    /// Scripts of three bytes that are neither Chinese, Japanese nor Korean, and typographic signs.
    Script,
    Kana,
    Han,
    Hangul,
    /// Four bytes: emoji and rare scripts.
    Rare,
    /// The second and later bytes of a character.
    Continuation,
}

impl Class {
    const ALL: [Self; 13] = [
        Self::Space,
        Self::Line,
        Self::Lower,
        Self::Upper,
        Self::Digit,
        Self::Sign,
        Self::Letter,
        Self::Script,
        Self::Kana,
        Self::Han,
        Self::Hangul,
        Self::Rare,
        Self::Continuation,
    ];

    const fn of(byte: usize) -> Self {
        match byte {
            0x0a | 0x0d => Self::Line,
            0x00..=0x20 => Self::Space,
            0x30..=0x39 => Self::Digit,
            0x41..=0x5a => Self::Upper,
            0x61..=0x7a => Self::Lower,
            0x21..=0x7f => Self::Sign,
            0xc0..=0xdf => Self::Letter,
            0xe3 => Self::Kana,
            0xe4..=0xe9 => Self::Han,
            0xea..=0xed => Self::Hangul,
            0xe0..=0xef => Self::Script,
            0xf0..=0xff => Self::Rare,
            _ => Self::Continuation,
        }
    }
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Continuation; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = Class::of(byte);
        byte += 1;
    }
    classes
};

/// What a character adds, and the state behind it.
#[derive(Clone, Copy)]
struct Step {
    cost: u8,
    state: u8,
}

/// A state is the class of the last character and how many of them came in a row, as far as that
/// matters: a few letters make a word, three digits a token.
const RUN_MAX: usize = 8;
const STATES: usize = Class::ALL.len() * RUN_MAX;

const STEPS: [[Step; 16]; 256] = {
    let mut steps = [[Step { cost: 0, state: 0 }; 16]; 256];
    let mut state = 0;
    while state < STATES {
        let last = Class::ALL[state / RUN_MAX];
        let run = state % RUN_MAX + 1;
        let mut number = 0;
        while number < Class::ALL.len() {
            steps[state][number] = step(last, run, Class::ALL[number]);
            number += 1;
        }
        state += 1;
    }
    steps
};

#[expect(
    clippy::cast_possible_truncation,
    reason = "there are fewer than 256 states"
)]
const fn step(last: Class, run: usize, class: Class) -> Step {
    if matches!(class, Class::Continuation) {
        let state = (last as usize * RUN_MAX + run - 1) as u8;
        return Step { cost: 0, state };
    }
    let run = match class {
        _ if last as u8 != class as u8 => 1,
        // Digits go round in threes, other runs stay at the most that is told apart.
        Class::Digit => run % 3 + 1,
        _ if run < RUN_MAX => run + 1,
        _ => RUN_MAX,
    };
    Step {
        cost: cost(last, class, run),
        state: (class as usize * RUN_MAX + run - 1) as u8,
    }
}

/// What a character adds, in parts of a token, when it is the `run`th of its class.
///
/// Fitted to a byte-pair tokenizer of 200,000 tokens on prose, code, JSON and the scripts named.
#[expect(
    clippy::match_same_arms,
    reason = "a table, in the order of the classes"
)]
const fn cost(last: Class, class: Class, run: usize) -> u8 {
    const WHOLE: u8 = 64;
    match (class, last) {
        // A word: its first letters are one token, further ones a part of the next. The capital
        // before it was counted.
        (Class::Lower, Class::Upper) => 0,
        (Class::Lower, Class::Lower) if run <= 6 => 0,
        (Class::Lower, Class::Lower) => 8,
        (Class::Lower, Class::Letter) => 12,
        (Class::Lower | Class::Upper, Class::Sign) | (Class::Upper, Class::Lower) => 52,
        (Class::Upper, Class::Upper) => 20,
        (Class::Digit, _) if run > 1 => 0,
        (Class::Lower | Class::Upper | Class::Digit, _) => WHOLE,
        (Class::Sign, Class::Sign) => 16,
        (Class::Sign, _) => 56,
        // One space belongs to the word behind it; an indentation is a token.
        (Class::Space, Class::Line) => 24,
        (Class::Space, Class::Space) if run == 2 => 40,
        (Class::Space | Class::Continuation, _) | (Class::Line, Class::Line) => 0,
        (Class::Line, Class::Sign) => 12,
        (Class::Line, _) => WHOLE,
        (Class::Letter, Class::Letter) => 13,
        (Class::Letter, Class::Lower | Class::Upper) => 20,
        (Class::Letter, _) => 44,
        (Class::Script, Class::Script) => 18,
        (Class::Script, _) => 40,
        (Class::Kana, _) => 48,
        (Class::Han, _) => 48,
        (Class::Hangul, _) => 46,
        (Class::Rare, _) => 96,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts and what a real tokenizer makes of them (`fixtures/count/README.md`).
    const MEASURED: [(&str, u64); 16] = [
        (include_str!("../fixtures/count/prose.txt"), 226),
        (include_str!("../fixtures/count/prose_long.txt"), 1024),
        (include_str!("../fixtures/count/code.txt"), 249),
        (include_str!("../fixtures/count/code_long.txt"), 1012),
        (include_str!("../fixtures/count/python.txt"), 634),
        (include_str!("../fixtures/count/javascript.txt"), 586),
        (include_str!("../fixtures/count/json.txt"), 247),
        (include_str!("../fixtures/count/json_long.txt"), 1782),
        (include_str!("../fixtures/count/chinese.txt"), 189),
        (include_str!("../fixtures/count/chinese_long.txt"), 576),
        (include_str!("../fixtures/count/japanese.txt"), 216),
        (include_str!("../fixtures/count/korean.txt"), 142),
        (include_str!("../fixtures/count/russian.txt"), 135),
        (include_str!("../fixtures/count/german.txt"), 107),
        (include_str!("../fixtures/count/spanish.txt"), 103),
        (include_str!("../fixtures/count/arabic.txt"), 95),
    ];

    fn tokens_in_json(json: &str) -> u64 {
        tokens_in(Cursor::new(json).value().unwrap())
    }

    #[test]
    fn estimates_are_within_fifteen_percent_of_a_tokenizer() {
        for (text, measured) in MEASURED {
            let estimate = tokens(text.as_bytes());
            let off = estimate.abs_diff(measured) * 1000 / measured;
            assert!(off <= 150, "{estimate} for {measured}: {text}");
        }
    }

    #[test]
    fn long_texts_are_sampled_and_still_near() {
        for (text, _) in MEASURED {
            let once = tokens(text.as_bytes());
            let long = tokens(text.repeat(200).as_bytes());
            let off = long.abs_diff(once * 200) * 100 / (once * 200);
            assert!(off <= 10, "{long} for {}", once * 200);
        }
    }

    #[test]
    fn json_is_counted_by_its_strings() {
        let plain = r#"[{"role":"user","content":"Tell me about the sea."}]"#;
        let estimate = tokens_in_json(plain);
        assert!((7..=12).contains(&estimate), "{estimate}");
        assert_eq!(tokens_in_json("[1,2,{}]"), 0);
        // Escapes count as what they mean.
        let (escaped, meant) = (r#"["\u4f60\u597d\n"]"#, "[\"你好\\n\"]");
        assert_eq!(tokens_in_json(escaped), tokens_in_json(meant));
    }

    #[test]
    fn media_count_the_same_whatever_their_size() {
        let data = "iVBORw0KGgo".repeat(100_000);
        for content in [
            format!(r#"{{"image_url":{{"url":"data:image/png;base64,{data}"}}}}"#),
            format!(r#"{{"source":{{"data":"{data}"}}}}"#),
            r#"{"image_url":"https://example.com/cat.png"}"#.to_owned(),
        ] {
            let estimate = tokens_in_json(&content);
            assert!((MEDIUM_TOKENS..MEDIUM_TOKENS + 8).contains(&estimate));
        }
        // The same bytes in a message are text, and cost what text costs.
        let text = format!(r#"{{"content":"{data}"}}"#);
        assert!(tokens_in_json(&text) > 100_000);
    }

    #[test]
    fn many_strings_are_sampled_and_still_near() {
        let (text, _) = MEASURED[0];
        let message = serde_json::to_string(&[("role", "user"), ("content", text)]).unwrap();
        let once = tokens_in_json(&message);
        let many = tokens_in_json(&format!("[{}]", vec![message; 1000].join(",")));
        let off = many.abs_diff(once * 1000) * 100 / (once * 1000);
        assert!(off <= 10, "{many} for {}", once * 1000);
    }

    proptest! {
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
        fn any_bytes_can_be_counted(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            tokens(&bytes);
        }
    }
}

//! Reads base64 as clients and upstreams send it, in either alphabet, padded or not, and writes it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{
    GeneralPurpose, GeneralPurposeConfig, STANDARD, URL_SAFE_NO_PAD,
};

/// Decodes digits of the standard alphabet. The caller has removed the padding. Unused bits of the
/// last digit may have any value.
const DIGITS: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// The text in the standard alphabet, padded. The text is not decoded, and copied only if it changes.
pub fn standard(text: &str) -> Cow<'_, str> {
    let bare = text.trim_end_matches('=');
    let missing = (4 - bare.len() % 4) % 4;
    let padded = text.len() - bare.len() == missing;
    if padded && !text.contains(['-', '_']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bare.len() + missing);
    out.extend(bare.chars().map(|c| match c {
        '-' => '+',
        '_' => '/',
        c => c,
    }));
    out.extend(std::iter::repeat_n('=', missing));
    Cow::Owned(out)
}

/// Encodes in the URL-safe alphabet, without padding.
pub(super) fn url_safe(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes either alphabet, padded or not. `None` if the text is not base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = standard(text);
    DIGITS.decode(text.trim_end_matches('=')).ok()
}

/// Encodes bytes that arrive in pieces, in the standard alphabet, padded.
#[derive(Debug, Default)]
pub struct Encoder {
    text: String,
    /// The bytes after the last whole group of three.
    rest: Vec<u8>,
}

impl Encoder {
    /// Takes the next piece.
    pub fn push(&mut self, mut piece: &[u8]) {
        while !self.rest.is_empty() && self.rest.len() < 3 {
            let Some((first, after)) = piece.split_first() else {
                return;
            };
            self.rest.push(*first);
            piece = after;
        }
        let (groups, rest) = piece.split_at(piece.len() - piece.len() % 3);
        self.text.reserve(piece.len().div_ceil(3) * 4 + 8);
        STANDARD.encode_string(&self.rest, &mut self.text);
        STANDARD.encode_string(groups, &mut self.text);
        self.rest.clear();
        self.rest.extend_from_slice(rest);
    }

    /// The text of all pieces.
    pub fn finish(mut self) -> String {
        STANDARD.encode_string(&self.rest, &mut self.text);
        self.text
    }
}

/// Decodes text that arrives in pieces, in either alphabet, padded or not.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The digits after the last whole group of four, in the standard alphabet.
    group: Vec<u8>,
    /// Whether padding has arrived, after which only more padding may follow.
    ended: bool,
}

impl Decoder {
    /// Appends the decoded bytes of the next piece. `None` if it is not base64.
    pub fn push(&mut self, text: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
        let (digits, padding) = text.split_at(memchr::memchr(b'=', text).unwrap_or(text.len()));
        if self.ended && !digits.is_empty() || padding.iter().any(|byte| *byte != b'=') {
            return None;
        }
        self.ended |= !padding.is_empty();
        self.group.extend(digits.iter().map(|digit| match digit {
            b'-' => b'+',
            b'_' => b'/',
            digit => *digit,
        }));
        let rest = self
            .group
            .split_off(self.group.len() - self.group.len() % 4);
        DIGITS.decode_vec(&self.group, bytes).ok()?;
        self.group = rest;
        Some(())
    }

    /// Appends the decoded bytes of the last group. `None` if the text ends in the middle of a byte.
    pub fn finish(self, bytes: &mut Vec<u8>) -> Option<()> {
        DIGITS.decode_vec(&self.group, bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_are_written_as_the_whole(pieces: Vec<Vec<u8>>) {
            let mut encoder = Encoder::default();
            for piece in &pieces {
                encoder.push(piece);
            }
            let text = encoder.finish();
            prop_assert_eq!(&standard(&text), &text);
            prop_assert_eq!(decode(&text), Some(pieces.concat()));
        }

        #[test]
        fn text_is_read_alike_however_it_is_cut(bytes: Vec<u8>, step in 1..9_usize) {
            let mut encoder = Encoder::default();
            encoder.push(&bytes);
            let (mut decoder, mut read) = (Decoder::default(), Vec::new());
            for piece in encoder.finish().as_bytes().chunks(step) {
                prop_assert!(decoder.push(piece, &mut read).is_some());
            }
            prop_assert!(decoder.finish(&mut read).is_some());
            prop_assert_eq!(read, bytes);
        }
    }

    #[test]
    fn texts_that_are_not_base64_are_refused() {
        for (text, expected) in [
            ("", Some(&b""[..])),
            ("QUJD", Some(b"ABC")),
            ("QUI=", Some(b"AB")),
            ("QUI", Some(b"AB")),
            ("QQ==", Some(b"A")),
            ("-_-_", Some(b"\xfb\xff\xbf")),
            ("Q", None),
            ("QUJDQ", None),
            ("QU=I", None),
            ("QU I", None),
            ("QU\nI", None),
        ] {
            assert_eq!(decode(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn either_alphabet_becomes_the_standard_one() {
        for (text, expected) in [
            ("", ""),
            ("QUJD", "QUJD"),
            ("QUI=", "QUI="),
            ("QUI", "QUI="),
            ("QQ", "QQ=="),
            ("QQ=", "QQ=="),
            ("-_-_", "+/+/"),
            ("a-_", "a+/="),
        ] {
            assert_eq!(standard(text), expected);
        }
        assert!(matches!(standard("QUI="), Cow::Borrowed(_)));
    }
}

//! Base64 in the one form that every dialect takes.

use std::borrow::Cow;

/// The text in the standard alphabet, padded. Clients send either alphabet, padded or not.
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

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub(super) const URL_SAFE: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Writes bytes that come in pieces, in the standard alphabet, padded.
#[derive(Debug, Default)]
pub struct Encoder {
    text: String,
    /// What has come behind the last whole group of three.
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
        spell(&self.rest, STANDARD, &mut self.text);
        let (whole, rest) = piece.split_at(piece.len() - piece.len() % 3);
        spell(whole, STANDARD, &mut self.text);
        self.rest.clear();
        self.rest.extend_from_slice(rest);
    }

    /// The text of all pieces.
    pub fn finish(mut self) -> String {
        spell(&self.rest, STANDARD, &mut self.text);
        let padding = (4 - self.text.len() % 4) % 4;
        self.text.extend(std::iter::repeat_n('=', padding));
        self.text
    }
}

/// Appends the digits of `bytes`, without padding.
pub(super) fn spell(bytes: &[u8], alphabet: &[u8; 64], text: &mut String) {
    let digit = |bits: u32| {
        let index = usize::try_from(bits & 63).unwrap_or(0);
        char::from(alphabet.get(index).copied().unwrap_or(b'A'))
    };
    text.reserve(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let digits = [
            digit(bits >> 18),
            digit(bits >> 12),
            digit(bits >> 6),
            digit(bits),
        ];
        text.extend(digits.into_iter().take(chunk.len() + 1));
    }
}

/// The bytes, from either alphabet, padded or not; nothing if it is no base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut decoder = Decoder::default();
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    decoder.push(text.as_bytes(), &mut bytes)?;
    decoder.finish(&mut bytes)?;
    Some(bytes)
}

/// Reads text that comes in pieces, in either alphabet, padded or not.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The digits of the group that is being read, the latest last.
    bits: u32,
    digits: usize,
    /// Behind the first `=` there is nothing but others.
    ended: bool,
}

impl Decoder {
    /// Appends what the next piece spells; `None` if it is no base64.
    pub fn push(&mut self, text: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
        for byte in text {
            if *byte == b'=' {
                self.ended = true;
                continue;
            }
            let value = value_of(*byte).filter(|_| !self.ended)?;
            self.bits = self.bits << 6 | u32::from(value);
            self.digits += 1;
            if self.digits == 4 {
                let [_, group @ ..] = self.bits.to_be_bytes();
                bytes.extend_from_slice(&group);
                (self.bits, self.digits) = (0, 0);
            }
        }
        Some(())
    }

    /// Appends what the last group spells; `None` if it is cut within a byte.
    pub fn finish(self, bytes: &mut Vec<u8>) -> Option<()> {
        let missing = match self.digits {
            0 => return Some(()),
            1 => return None,
            digits => 4 - digits,
        };
        let [_, group @ ..] = (self.bits << (6 * missing)).to_be_bytes();
        bytes.extend_from_slice(group.get(..3 - missing)?);
        Some(())
    }
}

fn value_of(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'-' | b'+' => 62,
        b'_' | b'/' => 63,
        _ => return None,
    })
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
    fn what_is_no_base64_is_refused() {
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

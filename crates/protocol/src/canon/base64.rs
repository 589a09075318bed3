//! Base64 in the one form that every dialect takes.

use std::borrow::Cow;

use super::opaque;

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
    opaque::decode(text)
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

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

/// The bytes, from either alphabet, padded or not; nothing if it is no base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    opaque::decode(text)
}

#[cfg(test)]
mod tests {
    use super::*;

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

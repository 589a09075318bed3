//! Decodes percent-encoding in paths and queries.

use std::borrow::Cow;

/// Decodes `%XX` once. Returns `None` if an escape is invalid or the result is not UTF-8.
pub(super) fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    let mut escapes = text.split('%').skip(1);
    let is_valid = escapes.all(|escape| {
        let digits = escape.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    // The decoder would copy an invalid escape unchanged.
    let decoded = percent_encoding::percent_decode_str(text);
    is_valid.then(|| decoded.decode_utf8().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_once_and_invalid_ones_are_refused() {
        for (text, decoded) in [
            ("", Some("")),
            ("a/b", Some("a/b")),
            ("a%2Fb%2fc", Some("a/b/c")),
            ("%2541", Some("%41")),
            ("%C3%A9", Some("\u{e9}")),
            ("%00", Some("\0")),
            ("%C3", None),
            ("%", None),
            ("%4", None),
            ("a%4", None),
            ("%%41", None),
            ("%+1", None),
            ("%zz", None),
            ("%4\u{e9}", None),
        ] {
            assert_eq!(percent_decoded(text).as_deref(), decoded, "{text}");
        }
    }
}

//! Decodes percent-encoding in paths and queries.

/// Decodes percent-encoding. Invalid UTF-8 becomes the replacement character.
pub(crate) fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = (first == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(first));
        let used = if escaped.is_some() { 2 } else { 0 };
        rest = after.get(used..).unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_undone() {
        for (value, expected) in [
            ("a%2Bb", "a+b"),
            ("100%", "100%"),
            ("%zz", "%zz"),
            ("%C3%BC", "ü"),
            ("%ff", "\u{fffd}"),
        ] {
            assert_eq!(decoded(value), expected);
        }
    }
}

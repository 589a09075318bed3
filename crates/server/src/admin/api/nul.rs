//! Detects NUL characters in requests. Stored texts never contain them, because not every database accepts them.

/// Whether a JSON text contains the escape `\u0000`. JSON does not allow the character itself.
pub(super) fn escapes_nul(json: &[u8]) -> bool {
    let mut rest = json;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        // A backslash and the next character form one escape, so the second of two backslashes does not start another.
        let escape = rest.get(at + 1..).unwrap_or_default();
        if escape.starts_with(b"u0000") {
            return true;
        }
        rest = escape.get(1..).unwrap_or_default();
    }
    false
}

/// Whether a path or a query contains an encoded NUL.
pub(super) fn names_nul(encoded: &str) -> bool {
    encoded.contains("%00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_nul_is_found_and_an_escaped_backslash_is_none() {
        for (json, found) in [
            (r#"{"a":"\u0000"}"#, true),
            (r#"{"a":"b\u0000c"}"#, true),
            (r#"{"\u0000":1}"#, true),
            (r#"{"a":"\\\u0000"}"#, true),
            (r#"{"a":"\\u0000"}"#, false),
            (r#"{"a":"u0000"}"#, false),
            (r#"{"a":"\u0001"}"#, false),
            (r#"{"a":"\u000"#, false),
            (r#"{"a":"\"#, false),
            ("", false),
        ] {
            assert_eq!(escapes_nul(json.as_bytes()), found, "{json}");
            let read = serde_json::from_str::<serde_json::Value>(json);
            if let Ok(value) = read {
                let has_nul = value.to_string().contains("\\u0000");
                assert!(has_nul || !found, "{json}");
            }
        }
    }
}

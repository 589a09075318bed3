//! Writes JSON as the vendor does: characters that are special in HTML are escaped.

use crate::reply::Reply;
use http::StatusCode;
use serde::Serialize;

const CONTENT_TYPE: &str = "application/json; charset=UTF-8";

/// Writes JSON on one line, as in events.
pub(crate) fn compact(value: &impl Serialize) -> Vec<u8> {
    // Strings, numbers and checked raw values always serialize.
    escaped(serde_json::to_vec(value).unwrap_or_default())
}

pub(crate) fn indented(status: StatusCode, value: &impl Serialize) -> Reply {
    let json = serde_json::to_vec_pretty(value).unwrap_or_default();
    Reply::whole(status, CONTENT_TYPE, escaped(json))
}

pub(crate) fn one_line(status: StatusCode, value: &impl Serialize) -> Reply {
    Reply::whole(status, CONTENT_TYPE, compact(value))
}

/// Escapes characters that are special in HTML. In JSON they occur only inside strings, so parsing is not necessary.
fn escaped(json: Vec<u8>) -> Vec<u8> {
    let is_marked = |byte: &u8| matches!(byte, b'<' | b'>' | b'&' | b'=' | b'\'' | 0xc2 | 0xe2);
    if !json.iter().any(is_marked) {
        return json;
    }
    let mut escaped = Vec::with_capacity(json.len() + json.len() / 16);
    let mut rest = json.as_slice();
    while let Some(at) = rest.iter().position(is_marked) {
        let (before, after) = rest.split_at(at);
        escaped.extend_from_slice(before);
        let (text, len): (&[u8], usize) = match after {
            [b'<', ..] => (b"\\u003c", 1),
            [b'>', ..] => (b"\\u003e", 1),
            [b'&', ..] => (b"\\u0026", 1),
            [b'=', ..] => (b"\\u003d", 1),
            [b'\'', ..] => (b"\\u0027", 1),
            // Unicode line separators, at which some clients split events.
            [0xc2, 0x85, ..] => (b"\\u0085", 2),
            [0xe2, 0x80, 0xa8, ..] => (b"\\u2028", 3),
            [0xe2, 0x80, 0xa9, ..] => (b"\\u2029", 3),
            [first, ..] => (std::slice::from_ref(first), 1),
            [] => break,
        };
        escaped.extend_from_slice(text);
        rest = after.get(len..).unwrap_or_default();
    }
    escaped.extend_from_slice(rest);
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn escaped_json_means_the_same() {
        for text in [
            "plain",
            "a <b> & 'c' = \"d\"",
            "\u{2028}\u{2029}\u{85}",
            "é – 世界 â\u{80}",
            "=",
        ] {
            let value = json!({"text": text, "list": [1, {"k=": "<"}]});
            let escaped = compact(&value);
            assert_eq!(serde_json::from_slice::<Value>(&escaped).unwrap(), value);
            let escaped = String::from_utf8(escaped).unwrap();
            assert!(!escaped.contains(['<', '>', '&', '=', '\'', '\u{2028}', '\u{85}']));
        }
        assert_eq!(compact(&"<="), b"\"\\u003c\\u003d\"");
    }
}

//! JSON as the vendor writes it: signs that mean something to web pages are escaped in texts.

use crate::reply::Reply;
use http::StatusCode;
use serde::Serialize;

const CONTENT_TYPE: &str = "application/json; charset=UTF-8";

/// On one line, as in events.
pub(crate) fn compact(value: &impl Serialize) -> Vec<u8> {
    // What is written here is made of texts, numbers and checked raw values: it always serializes.
    escaped(serde_json::to_vec(value).unwrap_or_default())
}

/// An indented body.
pub(crate) fn indented(status: StatusCode, value: &impl Serialize) -> Reply {
    let json = serde_json::to_vec_pretty(value).unwrap_or_default();
    Reply::whole(status, CONTENT_TYPE, escaped(json))
}

/// A body on one line.
pub(crate) fn one_line(status: StatusCode, value: &impl Serialize) -> Reply {
    Reply::whole(status, CONTENT_TYPE, compact(value))
}

/// None of the signs stands outside of texts in JSON, so their places need no parsing.
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
            // Line ends of Unicode, at which clients cut events.
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
            let written = compact(&value);
            assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), value);
            let written = String::from_utf8(written).unwrap();
            assert!(!written.contains(['<', '>', '&', '=', '\'', '\u{2028}', '\u{85}']));
        }
        assert_eq!(compact(&"<="), b"\"\\u003c\\u003d\"");
    }
}

//! Prepares a body for the journal: media, vectors and other bulk data become markers (`<image/png
//! base64, 48213 bytes>`), and the length is limited.
//!
//! The text need not be valid JSON, because broken bodies are often the interesting ones.

use std::borrow::Cow;
use std::fmt::Write;

use super::text::string_length;

/// Longer runs of base64 are replaced.
pub(crate) const RUN_CHARS_MAX: usize = 64;
/// Longer lists of numbers are replaced.
const NUMBERS_MAX: usize = 32;
/// Base64 continues after a line end if the line has at least this length.
const WRAPPED_LINE_CHARS_MIN: usize = 40;
/// The maximum length of a data URI's head, which ends at its comma.
const URI_HEAD_CHARS_MAX: usize = 128;
/// Members whose values are secrets of the client: its callback URL, and the credentials for its own tool
/// servers.
const SECRET: [&str; 7] = [
    "access_token",
    "api_key",
    "apikey",
    "authorization",
    "authorization_token",
    "callback_url",
    "x-api-key",
];
/// A member with headers for a tool server. Any header may be a credential.
const HEADERS: &str = "headers";

/// The body without bulk data, at most `bytes_max` bytes long.
pub fn redact(body: &[u8], bytes_max: usize) -> String {
    let text: Cow<'_, str> = String::from_utf8_lossy(body);
    let mut out = String::with_capacity(text.len().min(bytes_max).min(4096));
    let mut rest: &str = &text;
    let mut key = "";
    let mut is_in_headers = false;
    while out.len() <= bytes_max {
        let Some(at) = memchr::memchr2(b'"', b'[', rest.as_bytes()) else {
            put_runs(&mut out, rest, bytes_max);
            break;
        };
        let (before, found) = rest.split_at(at);
        put_runs(&mut out, before, bytes_max);
        is_in_headers &= !before.contains('}');
        if let Some(inside) = found.strip_prefix('"') {
            let (string, after) = inside.split_at(string_length(inside.as_bytes()));
            let is_key = after
                .strip_prefix('"')
                .is_some_and(|after| after.trim_ascii_start().starts_with(':'));
            out.push('"');
            if is_key {
                key = string;
                is_in_headers |= key == HEADERS;
                put_runs(&mut out, string, bytes_max);
            } else if is_in_headers || SECRET.iter().any(|it| key.eq_ignore_ascii_case(it)) {
                out.push_str("<hidden>");
            } else {
                put_string(&mut out, string, bytes_max);
            }
            rest = match after.strip_prefix('"') {
                Some(after) => {
                    out.push('"');
                    after
                }
                None => after,
            };
        } else if let Some((length, numbers)) = vector(found) {
            let _ = write!(out, "\"<vector, {numbers} numbers>\"");
            rest = found.get(length..).unwrap_or_default();
        } else {
            out.push('[');
            rest = found.get(1..).unwrap_or_default();
        }
    }
    bounded(out, bytes_max, text.len())
}

/// Truncates a text that is too long, and appends a mark with its full length.
fn bounded(mut out: String, bytes_max: usize, whole: usize) -> String {
    if out.len() <= bytes_max {
        return out;
    }
    let mark = format!("<cut, {whole} bytes in all>");
    let mut keep = bytes_max.saturating_sub(mark.len());
    while !out.is_char_boundary(keep) {
        keep -= 1;
    }
    out.truncate(keep);
    if mark.len() <= bytes_max {
        out.push_str(&mark);
    }
    out
}

fn put_string(out: &mut String, string: &str, bytes_max: usize) {
    match data_uri(string) {
        Some((kind, true, data)) => {
            let _ = write!(out, "<{kind} base64, {} bytes>", decoded_bytes(data));
        }
        Some((kind, false, data)) if data.len() > RUN_CHARS_MAX => {
            let _ = write!(out, "<{kind}, {} bytes>", data.len());
        }
        _ => put_runs(out, string, bytes_max),
    }
}

/// The media type of a data URI, whether it is base64, and its data.
fn data_uri(string: &str) -> Option<(&str, bool, &str)> {
    let (head, data) = string.strip_prefix("data:")?.split_once(',')?;
    if head.len() > URI_HEAD_CHARS_MAX {
        return None;
    }
    let kind = head.split(';').next().unwrap_or_default();
    // JSON may contain a slash as `\/`.
    let plain = |c: char| c.is_ascii_alphanumeric() || "/+.-_\\".contains(c);
    let kind = if kind.is_empty() || kind.len() > RUN_CHARS_MAX || !kind.chars().all(plain) {
        "data"
    } else {
        kind
    };
    Some((kind, head.ends_with(";base64"), data))
}

/// Copies text, with markers in place of long runs of base64.
fn put_runs(out: &mut String, text: &str, bytes_max: usize) {
    let bytes = text.as_bytes();
    let mut done = 0;
    let mut at = 0;
    while at < bytes.len() && out.len() + (at - done) <= bytes_max {
        let run = run_length(bytes, at);
        if run.chars > RUN_CHARS_MAX {
            out.push_str(text.get(done..at).unwrap_or_default());
            let found = text.get(at..at + run.bytes).unwrap_or_default();
            let _ = write!(out, "<base64, {} bytes>", decoded_bytes(found));
            done = at + run.bytes;
        }
        at += run.bytes.max(1);
    }
    // The text is truncated later. Here it is enough not to split a character.
    let mut end = at.min(bytes.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    out.push_str(text.get(done..end).unwrap_or_default());
}

#[derive(Default)]
struct Base64Run {
    /// All bytes, including line ends and escapes.
    bytes: usize,
    /// Characters of base64.
    chars: usize,
}

/// The run of base64 at `at`, across the line ends of wrapped base64.
fn run_length(bytes: &[u8], at: usize) -> Base64Run {
    let mut run = Base64Run::default();
    let mut line = 0;
    loop {
        let rest = bytes.get(at + run.bytes..).unwrap_or_default();
        let taken = match rest {
            [byte, ..] if is_base64(*byte) => 1,
            [b'\\', b'/', ..] => 2,
            _ => {
                let end = line_end_length(rest);
                let goes_on = rest.get(end).is_some_and(|byte| is_base64(*byte));
                if end == 0 || line < WRAPPED_LINE_CHARS_MIN || !goes_on {
                    return run;
                }
                line = 0;
                run.bytes += end;
                continue;
            }
        };
        run.bytes += taken;
        run.chars += 1;
        line += 1;
    }
}

fn line_end_length(rest: &[u8]) -> usize {
    const ENDS: [&[u8]; 4] = [b"\\r\\n", b"\\n", b"\r\n", b"\n"];
    let end = ENDS.iter().find(|end| rest.starts_with(end));
    end.map_or(0, |end| end.len())
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

/// The number of bytes that base64 decodes to, without line ends and their escapes.
fn decoded_bytes(base64: &str) -> usize {
    let mut digits: usize = 0;
    let mut escaped = false;
    for byte in base64.bytes() {
        let digit = is_base64(byte) && byte != b'=' && (!escaped || byte == b'/');
        digits += usize::from(digit);
        escaped = byte == b'\\' && !escaped;
    }
    digits.saturating_mul(3) / 4
}

/// A long list of numbers, which may be cut at the end of the text: its length in bytes, and the count of numbers.
fn vector(text: &str) -> Option<(usize, usize)> {
    let inside = text.strip_prefix('[')?;
    let length = inside.bytes().position(|byte| {
        !matches!(
            byte,
            b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E' | b',' | b' ' | b'\n' | b'\r' | b'\t'
        )
    });
    let length = length.unwrap_or(inside.len());
    let numbers = inside.get(..length)?.split(',').count();
    let after = match inside.as_bytes().get(length) {
        Some(b']') => 1,
        Some(_) => return None,
        None => 0,
    };
    (numbers > NUMBERS_MAX).then_some((1 + length + after, numbers))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn longest_run(text: &str) -> usize {
        let runs = text.split(|c: char| !c.is_ascii() || !is_base64(c as u8));
        runs.map(str::len).max().unwrap_or_default()
    }

    #[test]
    fn bulk_becomes_markers() {
        let data = "QUJD".repeat(100);
        let wrapped = vec!["QUJD".repeat(19); 10];
        let numbers = vec!["0.125"; 1536].join(",");
        for (body, redacted) in [
            (
                format!(r#"{{"url":"data:image/png;base64,{data}"}}"#),
                r#"{"url":"<image/png base64, 300 bytes>"}"#.to_owned(),
            ),
            (
                format!(r#"{{"b64_json": "{data}=="}}"#),
                r#"{"b64_json": "<base64, 300 bytes>"}"#.to_owned(),
            ),
            (
                format!(r#"{{"x":"see {data} there"}}"#),
                r#"{"x":"see <base64, 300 bytes> there"}"#.to_owned(),
            ),
            (
                format!(r#"{{"x":"{}"}}"#, wrapped.join("\\n")),
                r#"{"x":"<base64, 570 bytes>"}"#.to_owned(),
            ),
            (
                format!(r#"{{"embedding":[{numbers}"#),
                r#"{"embedding":"<vector, 1536 numbers>""#.to_owned(),
            ),
            (
                format!(r#"{{"embedding":[{numbers}],"i":[1,2,3]}}"#),
                r#"{"embedding":"<vector, 1536 numbers>","i":[1,2,3]}"#.to_owned(),
            ),
            (
                format!(r#"{{"u":"data:text\/html,{}"}}"#, "<p>".repeat(50)),
                r#"{"u":"<text\/html, 150 bytes>"}"#.to_owned(),
            ),
            (
                r#"{"callback_url": "https://me.example/hook?token=1", "n": 1}"#.to_owned(),
                r#"{"callback_url": "<hidden>", "n": 1}"#.to_owned(),
            ),
            (
                format!("data: {{\"a\":\"{data}"),
                "data: {\"a\":\"<base64, 300 bytes>".to_owned(),
            ),
        ] {
            assert_eq!(redact(body.as_bytes(), 10_000), redacted);
        }
    }

    /// Credentials for the client's own servers are not kept (K4 in `docs/invariants.md`).
    #[test]
    fn credentials_of_the_client_are_hidden() {
        for (body, expected) in [
            (
                r#"{"tools":[{"type":"mcp","authorization":"s-1","server_label":"a"}]}"#,
                r#"{"tools":[{"type":"mcp","authorization":"<hidden>","server_label":"a"}]}"#,
            ),
            (
                r#"{"mcp_servers":[{"authorization_token" : "s-1"}],"x":["y"]}"#,
                r#"{"mcp_servers":[{"authorization_token" : "<hidden>"}],"x":["y"]}"#,
            ),
            (
                r#"{"headers":{"X-Own":"s-1","Cookie":"s-2"},"name":"f"}"#,
                r#"{"headers":{"X-Own":"<hidden>","Cookie":"<hidden>"},"name":"f"}"#,
            ),
            (
                r#"{"environment":{"API_Key":"s-1"},"n":1,"content":"the api_key"}"#,
                r#"{"environment":{"API_Key":"<hidden>"},"n":1,"content":"the api_key"}"#,
            ),
            (
                r#"{"headers":{},"properties":{"api_key":{"type":"string"}}}"#,
                r#"{"headers":{},"properties":{"api_key":{"type":"string"}}}"#,
            ),
        ] {
            assert_eq!(redact(body.as_bytes(), 1_000), expected);
        }
    }

    #[test]
    fn text_that_is_not_bulk_data_stays() {
        for body in [
            r#"{"model":"maker/model","messages":[{"role":"user","content":"Hi \"you\"\n"}]}"#,
            r#"{"url":"data:,short"}"#,
            "not json at all [1,2",
            "",
        ] {
            assert_eq!(redact(body.as_bytes(), 10_000), body);
        }
    }

    #[test]
    fn the_bound_is_hard() {
        let body = "words and more words ".repeat(1000);
        let redacted = redact(body.as_bytes(), 200);
        assert!(redacted.len() <= 200);
        assert!(redacted.ends_with("<cut, 21000 bytes in all>"));
        assert_eq!(redact(body.as_bytes(), 0), "");
    }

    fn any_body() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            "[A-Za-z0-9+/=_-]{0,300}",
            "[A-Za-z0-9]{76}",
            Just("\\n".to_owned()),
            Just("\\/".to_owned()),
            Just("\"".to_owned()),
            Just("\\".to_owned()),
            Just("\"callback_url\":".to_owned()),
            Just("data:image/png;base64,".to_owned()),
            Just("[".to_owned()),
            "(0\\.[0-9]{1,4},){0,60}1\\]",
            any::<String>(),
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn no_long_run_of_base64_is_left(body in any_body(), bytes_max in 0_usize..3000) {
            let redacted = redact(&body, bytes_max);
            prop_assert!(longest_run(&redacted) <= RUN_CHARS_MAX, "{}", redacted);
            prop_assert!(redacted.len() <= bytes_max);
        }

        #[test]
        fn any_bytes_can_be_redacted(body in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(redact(&body, 100).len() <= 100);
        }
    }
}

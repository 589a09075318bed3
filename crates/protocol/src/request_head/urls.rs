//! Finds the URLs in a request that an upstream may fetch.

use std::borrow::Cow;

use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::{Cursor, Shape};

/// Members with the input, the output or the definition of a tool, with a schema, or with labels.
/// No upstream fetches a URL in them.
const TOOL_DATA: [&str; 18] = [
    "$defs",
    "args",
    "arguments",
    "definitions",
    "input_examples",
    "input_schema",
    "labels",
    "metadata",
    "parameters",
    "parametersJsonSchema",
    "parameters_json_schema",
    "properties",
    "response",
    "responseJsonSchema",
    "responseSchema",
    "response_json_schema",
    "response_schema",
    "schema",
];

/// Members of requests for pictures and videos that hold texts, and the callback URL, which only the gateway
/// calls.
const MEDIA_TEXTS: [&str; 8] = [
    "callback_url",
    "input",
    "model",
    "negativePrompt",
    "negative_prompt",
    "prompt",
    "text",
    "user",
];

/// Members of a request for media with labels, which no upstream fetches.
const LABELS: [&str; 2] = ["labels", "metadata"];

/// A longer word before a colon is not a URL scheme.
const SCHEME_BYTES: usize = 16;

/// All URLs of a text request in places that an upstream may fetch from: images, files, tool
/// servers. Data URIs are left out. The rest need not be valid URLs.
pub fn fetchable_urls(dialect: Dialect, body: &[u8]) -> Result<Vec<String>, Failure> {
    find(body, Places::OfText(dialect))
}

/// Whether an upstream may fetch from a URL in a text, which is read like a request.
pub(crate) fn has_fetchable_url(dialect: Dialect, text: &str) -> Result<bool, Failure> {
    let mut any = false;
    let places = Places::OfText(dialect);
    collect(places, &mut Cursor::new(text), "", &mut |_| any = true)?;
    Ok(any)
}

/// All URLs that an upstream may fetch for a request for pictures, videos, speech or embeddings. These requests
/// have many member names, and unknown members reach the upstream too. So a URL counts in every member, except
/// in members for texts.
pub fn fetchable_media_urls(body: &[u8]) -> Result<Vec<String>, Failure> {
    find(body, Places::OfMedia)
}

/// The URLs in a form field that an upstream may fetch. The field may hold JSON.
pub(crate) fn fetchable_field(name: &str, text: &str) -> Vec<String> {
    let text = text.trim();
    if Places::OfMedia.excludes(name) {
        return Vec::new();
    }
    if Places::OfMedia.is_fetched(name, text) {
        return vec![text.to_owned()];
    }
    if !text.starts_with(['{', '[']) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let read = collect(Places::OfMedia, &mut Cursor::new(text), name, &mut |url| {
        found.push(url.into_owned());
    });
    // A lenient server may still read invalid JSON. The whole text counts as a URL, and is refused because it
    // is not valid.
    if read.is_err() && may_name_url(text) {
        found.push(text.to_owned());
    }
    found
}

/// Whether a text that we cannot read as JSON may name a URL for a server that can: in quotes of any
/// kind, and with escapes.
pub(crate) fn may_name_url(text: &str) -> bool {
    let is_in_quotes = |inside: &str| {
        let inside = inside.replace("\\/", "/");
        // Other escapes may stand for any character of a URL.
        let is_coded = inside.contains("\\u") || inside.contains("\\x");
        is_coded || inside.contains('\\') && inside.contains(':') || is_url(&inside)
    };
    text.contains("://") || text.split(['"', '\'', '`']).skip(1).any(is_in_quotes)
}

/// The places where upstreams look for URLs.
#[derive(Clone, Copy)]
enum Places {
    OfText(Dialect),
    OfMedia,
}

impl Places {
    /// Whether nothing inside a member is fetched.
    fn excludes(self, member: &str) -> bool {
        match self {
            Self::OfText(dialect) => is_tool_data(dialect, member),
            Self::OfMedia => LABELS.contains(&member),
        }
    }

    /// Whether a string in a member may be fetched. Servers accept more URLs than the standard allows. So in a
    /// text request, every value of a URL member counts, except data URIs.
    fn is_fetched(self, member: &str, text: &str) -> bool {
        match self {
            Self::OfText(_) => {
                holds_url(member) && scheme(text).as_deref() != Some("data") && !text.is_empty()
            }
            Self::OfMedia => !MEDIA_TEXTS.contains(&member) && is_url(text),
        }
    }
}

fn find(body: &[u8], places: Places) -> Result<Vec<String>, Failure> {
    let text = std::str::from_utf8(body).map_err(|_| Failure::invalid("The body is not UTF-8."))?;
    let mut found = Vec::new();
    collect(places, &mut Cursor::new(text), "", &mut |url| {
        found.push(url.into_owned());
    })?;
    Ok(found)
}

fn collect(
    places: Places,
    cursor: &mut Cursor<'_>,
    member: &str,
    found: &mut impl FnMut(Cow<'_, str>),
) -> Result<(), Failure> {
    match cursor.shape()? {
        Shape::Object => cursor.object(|cursor, name| {
            let name = name.decode_lossy();
            if places.excludes(&name) {
                return cursor.value().map(drop).map_err(Failure::from);
            }
            collect(places, cursor, &name, found)
        }),
        Shape::Array => cursor.array(|cursor| collect(places, cursor, member, found)),
        Shape::String => {
            let url = cursor.string()?.decode_lossy();
            if places.is_fetched(member, &url) {
                found(url);
            }
            Ok(())
        }
        _ => cursor.value().map(drop).map_err(Failure::from),
    }
}

pub(super) fn is_tool_data(dialect: Dialect, member: &str) -> bool {
    // In Messages, `input` is the input of a tool. In other dialects it is the conversation.
    let is_tool_input = dialect == Dialect::Messages && member == "input";
    is_tool_input || TOOL_DATA.contains(&member)
}

/// Whether a member holds a URL: `url`, `image_url`, `fileUri`, `server_url` …
pub(super) fn holds_url(member: &str) -> bool {
    let ending = member.len().checked_sub(3).and_then(|at| member.get(at..));
    ending.is_some_and(|it| it.eq_ignore_ascii_case("url") || it.eq_ignore_ascii_case("uri"))
}

/// Whether a text is a URL that can be fetched, as lenient servers read it.
fn is_url(text: &str) -> bool {
    match scheme(text).as_deref() {
        Some("http" | "https" | "file" | "ftp") => true,
        Some("data") | None => false,
        Some(_) => text.contains("://"),
    }
}

/// The scheme of a URL in lower case. Parsers ignore blanks and control characters before a URL,
/// and tabs and line breaks anywhere in it.
fn scheme(text: &str) -> Option<String> {
    let mut scheme = String::new();
    let start = text.trim_start_matches(|char: char| char.is_whitespace() || char.is_control());
    for char in start
        .chars()
        .filter(|char| !matches!(char, '\t' | '\n' | '\r'))
    {
        match char {
            ':' => return (!scheme.is_empty()).then_some(scheme),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '+' | '-' | '.' if scheme.len() < SCHEME_BYTES => {
                scheme.push(char.to_ascii_lowercase());
            }
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_where_upstreams_look_for_them() {
        use Dialect::{Chat, Generate, Interactions, Messages, Responses};
        for (dialect, body, expected) in [
            (
                Chat,
                r#"{"messages":[{"content":[{"type":"text","text":"see http://a.b"},
                {"type":"image_url","image_url":{"url":"http://a.b/1"}}]}]}"#,
                &["http://a.b/1"][..],
            ),
            (
                Responses,
                r#"{"input":[{"content":[{"image_url":"HTTPS://a.b/1"},{"file_url":"http:a.b"}]}],
                "tools":[{"type":"mcp","server_url":"https://a.b/2"},
                {"type":"function","parameters":{"url":"https://no"}}]}"#,
                &["HTTPS://a.b/1", "http:a.b", "https://a.b/2"],
            ),
            (
                Messages,
                r#"{"messages":[{"content":[{"source":{"type":"url","\u0075rl":"https://a.b/1"}},
                {"type":"tool_use","input":{"url":"http://localhost"}}]}]}"#,
                &["https://a.b/1"],
            ),
            (
                Generate,
                r#"{"contents":[{"parts":[{"fileData":{"fileUri":"https://a.b/1"}},
                {"file_data":{"file_uri":"gs://a/b"}},{"x":{"fileUri":""}},{"functionCall":{"args":{"url":"http://no"}}},
                {"functionResponse":{"response":{"uri":"http://no"}}}]}]}"#,
                &["https://a.b/1", "gs://a/b"],
            ),
            (
                Interactions,
                r#"{"input":[{"type":"image","uri":"https://a.b/1"},
                {"type":"image","uri":"data:image/png;base64,AA"},
                {"type":"image","uri":"ht\tp://a.b/2"},{"type":"image","uri":"/etc/hosts"},
                {"type":"image","uri":" \u0001DATA:image/png;base64,AA"}]}"#,
                &["https://a.b/1", "ht\tp://a.b/2", "/etc/hosts"],
            ),
        ] {
            assert_eq!(
                fetchable_urls(dialect, body.as_bytes()).unwrap(),
                expected,
                "{dialect}"
            );
        }
    }

    #[test]
    fn every_address_in_a_request_for_media_counts_except_texts() {
        for (body, expected) in [
            (
                r#"{"prompt":"https://no","image":"https://a.b/1","images":["http:a.b",
                {"image_url":{"url":" HTTP://a.b/2"}}],"mask":{"x_unknown":"https://a.b/3"},
                "callback_url":"https://no","user":"https://no","n":1,"aspect_ratio":"16:9",
                "metadata":{"link":"https://no"},"size":"a: b"}"#,
                &[
                    "https://a.b/1",
                    "http:a.b",
                    " HTTP://a.b/2",
                    "https://a.b/3",
                ][..],
            ),
            (
                r#"{"content":[{"type":"text","text":"http://no"},
                {"type":"video_url","video_url":{"url":"https://a.b/1"}}]}"#,
                &["https://a.b/1"],
            ),
            (
                r#"{"instances":[{"prompt":"a","image":{"gcsUri":"gs://a/b"},
                "referenceImages":[{"image":{"uri":"https://a.b/1"}}]}],
                "parameters":{"negativePrompt":"http://no","storageUri":"https://a.b/2"}}"#,
                &["gs://a/b", "https://a.b/1", "https://a.b/2"],
            ),
            (r#"{"input":"https://no"}"#, &[]),
            (
                r#"{"image":["\u0001http://a.b","h\nttp:a.b","file:a","s3://a","data:x","ht tp://a"]}"#,
                &["\u{1}http://a.b", "h\nttp:a.b", "file:a", "s3://a"],
            ),
            (
                r#"{"input":[{"type":"image","uri":"https://a.b/1"}]}"#,
                &["https://a.b/1"],
            ),
        ] {
            assert_eq!(fetchable_media_urls(body.as_bytes()).unwrap(), expected);
        }
        for (name, text, expected) in [
            ("image", "https://a.b/1\n", &["https://a.b/1"][..]),
            ("image[]", "http:a.b", &["http:a.b"]),
            ("x_unknown", "HTTPS://a.b", &["HTTPS://a.b"]),
            (
                "tools",
                r#" [{"type":"mcp","server_url":"http://a.b/1"},{"x":"file:/a"}]"#,
                &["http://a.b/1", "file:/a"],
            ),
            (
                "tools",
                "[{'server_url': 'http://a'}]",
                &["[{'server_url': 'http://a'}]"],
            ),
            (
                "tools",
                r#"[,{"server_url":"http:\/\/a"}]"#,
                &[r#"[,{"server_url":"http:\/\/a"}]"#],
            ),
            (
                "tools",
                r#"[,{"server_url":"\u0068ttp:a"}]"#,
                &[r#"[,{"server_url":"\u0068ttp:a"}]"#],
            ),
            ("tools", "[{'x': 'http:a'}]", &["[{'x': 'http:a'}]"]),
            ("x_unknown", "[a boat: \"http\", a\\b 'it's: so']", &[]),
            ("x_unknown", "[http: a boat]", &[]),
            ("x_unknown", "[a boat]", &[]),
            ("prompt", "https://no", &[]),
            ("prompt", r#"["https://no"]"#, &[]),
            ("metadata", r#"{"link":"https://no"}"#, &[]),
            ("size", "1024x1024", &[]),
        ] {
            assert_eq!(fetchable_field(name, text), expected, "{name}: {text}");
        }
        // Other parsers read what is nested deeper.
        let nested = ["[".repeat(200), "]".repeat(200)].concat();
        let deep = format!(r#"[{nested},{{"server_url":"http:\/\/a"}}]"#);
        assert_eq!(fetchable_field("tools", &deep), [deep]);
    }
}

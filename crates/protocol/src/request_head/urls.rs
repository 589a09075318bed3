//! Finds the URLs in a request that an upstream may fetch.
//!
//! Only so many different URLs are collected as the gateway accepts, and one more, which shows that there are too many.
//! A caller may send millions of them.

use std::borrow::Cow;
use std::collections::HashSet;

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
/// servers. Data URIs are left out. The rest need not be valid URLs. At most one more than `accepted`
/// are returned.
pub fn fetchable_urls(
    dialect: Dialect,
    body: &[u8],
    accepted: usize,
) -> Result<HashSet<String>, Failure> {
    find(body, Places::OfText(dialect), accepted)
}

/// All URLs that an upstream may fetch for a request for pictures, videos, speech or embeddings. These requests
/// have many member names, and unknown members reach the upstream too. So a URL counts in every member, except
/// in members for texts. At most one more than `accepted` are returned.
pub fn fetchable_media_urls(body: &[u8], accepted: usize) -> Result<HashSet<String>, Failure> {
    find(body, Places::OfMedia, accepted)
}

/// The URLs that an upstream may fetch from for the fields of a form: names and texts. A field may
/// hold JSON. At most one more than `accepted` are returned.
pub(crate) fn fetchable_fields<'f>(
    fields: impl Iterator<Item = (&'f str, Cow<'f, str>)>,
    accepted: usize,
) -> HashSet<String> {
    let mut finder = Finder::new(Places::OfMedia, accepted);
    for (name, text) in fields {
        finder.field(name, text.trim());
    }
    finder.found
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

fn find(body: &[u8], places: Places, accepted: usize) -> Result<HashSet<String>, Failure> {
    let text = std::str::from_utf8(body).map_err(|_| Failure::invalid("The body is not UTF-8."))?;
    let mut finder = Finder::new(places, accepted);
    finder.value(&mut Cursor::new(text), "")?;
    Ok(finder.found)
}

struct Finder {
    places: Places,
    accepted: usize,
    found: HashSet<String>,
}

impl Finder {
    fn new(places: Places, accepted: usize) -> Self {
        Self {
            places,
            accepted,
            found: HashSet::new(),
        }
    }

    fn note(&mut self, url: Cow<'_, str>) {
        if self.found.len() <= self.accepted {
            self.found.insert(url.into_owned());
        }
    }

    fn value(&mut self, cursor: &mut Cursor<'_>, member: &str) -> Result<(), Failure> {
        match cursor.shape()? {
            Shape::Object => cursor.object(|cursor, name| {
                let name = name.decode_lossy();
                if self.places.excludes(&name) {
                    return cursor.value().map(drop).map_err(Failure::from);
                }
                self.value(cursor, &name)
            }),
            Shape::Array => cursor.array(|cursor| self.value(cursor, member)),
            Shape::String => {
                let url = cursor.string()?.decode_lossy();
                if self.places.is_fetched(member, &url) {
                    self.note(url);
                }
                Ok(())
            }
            _ => cursor.value().map(drop).map_err(Failure::from),
        }
    }

    fn field(&mut self, name: &str, text: &str) {
        if self.places.excludes(name) {
            return;
        }
        if self.places.is_fetched(name, text) {
            self.note(text.into());
        } else if text.starts_with(['{', '[']) {
            let read = self.value(&mut Cursor::new(text), name);
            // A lenient server may still read invalid JSON. The whole text counts as a URL, and is refused because
            // it is not valid.
            if read.is_err() && may_name_url(text) {
                self.note(text.into());
            }
        }
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

    fn set(urls: &[&str]) -> HashSet<String> {
        urls.iter().map(|url| (*url).to_owned()).collect()
    }

    #[test]
    fn one_url_more_than_accepted_is_collected() {
        for (different, accepted, collected) in [(1, 0, 1), (3, 3, 3), (4, 3, 4), (1_000, 3, 4)] {
            let urls: Vec<String> = (0..1_000)
                .map(|number| format!("\"http://a.b/{}\"", number % different))
                .collect();
            let urls = urls.join(",");
            let text = format!(r#"{{"input":[{{"image_url":[{urls}]}}]}}"#);
            let found = fetchable_urls(Dialect::Responses, text.as_bytes(), accepted).unwrap();
            assert_eq!(found.len(), collected);
            let media = format!(r#"{{"images":[{urls}]}}"#);
            let found = fetchable_media_urls(media.as_bytes(), accepted).unwrap();
            assert_eq!(found.len(), collected);
            let field = std::iter::once(("images", format!("[{urls}]").into()));
            assert_eq!(fetchable_fields(field, accepted).len(), collected);
        }
    }

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
            let found = fetchable_urls(dialect, body.as_bytes(), 20).unwrap();
            assert_eq!(found, set(expected), "{dialect}");
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
            let found = fetchable_media_urls(body.as_bytes(), 20).unwrap();
            assert_eq!(found, set(expected));
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
            let found = fetchable_fields(std::iter::once((name, text.into())), 20);
            assert_eq!(found, set(expected), "{name}: {text}");
        }
        // Other parsers read what is nested deeper.
        let nested = ["[".repeat(200), "]".repeat(200)].concat();
        let deep = format!(r#"[{nested},{{"server_url":"http:\/\/a"}}]"#);
        let field = std::iter::once(("tools", deep.as_str().into()));
        assert_eq!(fetchable_fields(field, 20), set(&[&deep]));
    }
}

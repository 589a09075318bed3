//! Finds the pictures that a request names by URL, and puts their data in the places of the URLs.
//!
//! This is for upstreams that speak the caller's dialect but fetch no URLs. All other bytes stay the caller's.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use bytes::Bytes;

use super::request::{read_head, read_named_head};
use crate::canon::{data_uri, mime};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::guard::is_web_url;
use crate::json::patch::{self, Edit};
use crate::json::write::object;
use crate::json::{Cursor, Shape, SyntaxError, write_string};
use crate::request_head::Head;

/// The members that lead from a conversation to its pictures. The arguments of tool calls are in none of
/// them.
const INNER: [&str; 10] = [
    "content",
    "fileData",
    "file_data",
    "functionResponse",
    "function_response",
    "image_url",
    "output",
    "parts",
    "result",
    "source",
];

/// A picture that a request names by URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPicture {
    /// The first place in the request, such as `messages[0].content[1]`.
    pub path: String,
    /// All places where the request has it.
    places: Vec<Place>,
}

/// The bytes that the picture replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// A string that is a URL or a data URI.
    Address(Range<usize>),
    /// The source of a picture (Messages).
    Source(Range<usize>),
    /// The member that names a file (Generate Content).
    File(Range<usize>),
    /// The member with the URL, and the value of the media type, if there is one (Interactions).
    Uri {
        member: Range<usize>,
        mime: Option<Range<usize>>,
    },
}

impl NamedPicture {
    /// The number of places where the request has the picture.
    pub fn count(&self) -> usize {
        self.places.len()
    }
}

impl Place {
    /// The changes that put a picture in base64 here.
    fn edits(&self, mime: &str, data: &str) -> Vec<Edit> {
        let mut out = Vec::with_capacity(data.len() + 64);
        let span = match self {
            Place::Address(span) => {
                write_string(&mut out, &data_uri::join(mime, data));
                span
            }
            Place::Source(span) => {
                object(&mut out, |it| {
                    it.text("type", "base64").text("media_type", mime);
                    it.text("data", data);
                });
                span
            }
            Place::File(member) => {
                out.extend_from_slice(b"\"inlineData\":");
                object(&mut out, |it| {
                    it.text("mimeType", mime).text("data", data);
                });
                member
            }
            Place::Uri { member, mime: own } => {
                let mut word = Vec::new();
                write_string(&mut word, mime);
                out.extend_from_slice(b"\"data\":");
                write_string(&mut out, data);
                let Some(own) = own else {
                    out.extend_from_slice(b",\"mime_type\":");
                    out.extend_from_slice(&word);
                    return vec![Edit::replace(member.clone(), out)];
                };
                return vec![
                    Edit::replace(member.clone(), out),
                    Edit::replace(own.clone(), word),
                ];
            }
        };
        vec![Edit::replace(span.clone(), out)]
    }
}

/// The pictures that the conversation of a request names by a web URL for which `is_wanted` is true. At most one more
/// than `accepted` are returned, because a caller may name millions.
pub fn named_pictures(
    dialect: Dialect,
    body: &[u8],
    is_wanted: impl Fn(&str) -> bool,
    accepted: usize,
) -> Result<HashMap<String, NamedPicture>, Failure> {
    let text = std::str::from_utf8(body).map_err(|_| Failure::invalid("The body is not UTF-8."))?;
    let conversation = match dialect {
        Dialect::Chat | Dialect::Messages => "messages",
        Dialect::Responses | Dialect::Interactions => "input",
        Dialect::Generate => "contents",
    };
    let mut finder = Finder {
        dialect,
        path: conversation.to_owned(),
        is_wanted,
        accepted,
        found: HashMap::new(),
    };
    Cursor::new(text).object(|cursor, name| {
        if name.is(conversation) {
            finder.value(cursor).map(drop)
        } else {
            cursor.value().map(drop)
        }
    })?;
    Ok(finder.found)
}

/// Replaces the URLs of pictures in a request. Each item is a picture's place, its media type, and its data
/// in base64.
pub fn with_pictures<'p>(
    dialect: Dialect,
    body: &Bytes,
    head: &Head,
    pictures: impl IntoIterator<Item = (&'p NamedPicture, &'p str, &'p str)>,
) -> Result<(Bytes, Head), Failure> {
    let edits = pictures.into_iter().flat_map(|(picture, mime, data)| {
        let places = picture.places.iter();
        places.flat_map(move |place| place.edits(mime, data))
    });
    let body = patch::apply(body, edits.collect());
    // The positions of all other edits have changed, so the head is read again.
    let head = match dialect {
        Dialect::Generate => read_named_head(&body, &head.model, head.stream),
        _ => read_head(dialect, &body),
    }?;
    Ok((body, head))
}

/// The strings of an object that may describe a picture, and their positions.
#[derive(Default)]
struct Strings<'a> {
    kind: Option<Cow<'a, str>>,
    address: Option<Address<'a>>,
    mime: Option<(Cow<'a, str>, Range<usize>)>,
}

struct Address<'a> {
    url: Cow<'a, str>,
    value: Range<usize>,
    member: Range<usize>,
}

/// An object that may name a picture, inside another object.
struct Inner<'a> {
    strings: Strings<'a>,
    value: Range<usize>,
    member: Range<usize>,
}

struct Finder<W> {
    dialect: Dialect,
    path: String,
    is_wanted: W,
    /// The maximum number of pictures to return, less one.
    accepted: usize,
    found: HashMap<String, NamedPicture>,
}

impl<W: Fn(&str) -> bool> Finder<W> {
    /// Searches a value. Returns the strings of an object.
    fn value<'a>(&mut self, cursor: &mut Cursor<'a>) -> Result<Strings<'a>, SyntaxError> {
        match cursor.shape()? {
            Shape::Object => self.object(cursor),
            Shape::Array => {
                let length = self.path.len();
                let mut index = 0_usize;
                cursor.array(|cursor| {
                    // Writing to a string cannot fail.
                    let _ = write!(self.path, "[{index}]");
                    index += 1;
                    self.value(cursor)?;
                    self.path.truncate(length);
                    Ok::<(), SyntaxError>(())
                })?;
                Ok(Strings::default())
            }
            _ => cursor.value().map(|_| Strings::default()),
        }
    }

    fn object<'a>(&mut self, cursor: &mut Cursor<'a>) -> Result<Strings<'a>, SyntaxError> {
        let mut own = Strings::default();
        let mut inner = None;
        cursor.object(|cursor, name| {
            let start = name.span().start.saturating_sub(1);
            let name = name.decode_lossy();
            let shape = cursor.shape()?;
            let at = cursor.position();
            match shape {
                Shape::String => {
                    let text = cursor.string()?.decode_lossy();
                    let value = at..cursor.position();
                    match &*name {
                        "type" => own.kind = Some(text),
                        "mimeType" | "mime_type" => own.mime = Some((text, value)),
                        name if holds_address(self.dialect, name) => {
                            own.address = Some(Address {
                                url: text,
                                member: start..value.end,
                                value,
                            });
                        }
                        _ => {}
                    }
                }
                // A result that is an object is the data of a tool.
                Shape::Object if name == "result" => drop(cursor.value()?),
                Shape::Object | Shape::Array if INNER.contains(&&*name) => {
                    let length = self.path.len();
                    self.path.push('.');
                    self.path.push_str(&name);
                    let strings = self.value(cursor)?;
                    self.path.truncate(length);
                    let end = cursor.position();
                    if shape == Shape::Object {
                        inner = Some(Inner {
                            strings,
                            value: at..end,
                            member: start..end,
                        });
                    }
                }
                _ => drop(cursor.value()?),
            }
            Ok::<(), SyntaxError>(())
        })?;
        if let Some((url, place)) = self.place(&own, inner.as_ref())
            && is_web_url(url)
            && (self.is_wanted)(url)
        {
            self.note(url, place);
        }
        Ok(own)
    }

    fn note(&mut self, url: &str, place: Place) {
        if let Some(known) = self.found.get_mut(url) {
            known.places.push(place);
        } else if self.found.len() <= self.accepted {
            let picture = NamedPicture {
                path: self.path.clone(),
                places: vec![place],
            };
            self.found.insert(url.to_owned(), picture);
        }
    }

    /// The URL and the place of the picture, if the object is a picture.
    fn place<'s>(
        &self,
        own: &'s Strings<'_>,
        inner: Option<&'s Inner<'_>>,
    ) -> Option<(&'s str, Place)> {
        let kind = own.kind.as_deref();
        match self.dialect {
            Dialect::Chat | Dialect::Responses => {
                let word = if self.dialect == Dialect::Chat {
                    "image_url"
                } else {
                    "input_image"
                };
                let address = own
                    .address
                    .as_ref()
                    .or_else(|| inner?.strings.address.as_ref())
                    .filter(|_| kind == Some(word))?;
                Some((&address.url, Place::Address(address.value.clone())))
            }
            Dialect::Messages => {
                let source = inner.filter(|_| kind == Some("image"))?;
                let address = source.strings.address.as_ref()?;
                let is_url = source.strings.kind.as_deref() == Some("url");
                is_url.then(|| (&*address.url, Place::Source(source.value.clone())))
            }
            Dialect::Generate => {
                let file = inner?;
                let address = file.strings.address.as_ref()?;
                let is_picture = match &file.strings.mime {
                    Some((mime, _)) => mime.starts_with("image/"),
                    None => mime::of_url(&address.url).is_some(),
                };
                is_picture.then(|| (&*address.url, Place::File(file.member.clone())))
            }
            Dialect::Interactions => {
                let address = own.address.as_ref().filter(|_| kind == Some("image"))?;
                let place = Place::Uri {
                    member: address.member.clone(),
                    mime: own.mime.as_ref().map(|(_, value)| value.clone()),
                };
                Some((&address.url, place))
            }
        }
    }
}

/// Whether a member of a picture holds its URL.
fn holds_address(dialect: Dialect, member: &str) -> bool {
    match dialect {
        Dialect::Chat | Dialect::Responses => matches!(member, "url" | "image_url"),
        Dialect::Messages => member == "url",
        Dialect::Generate => matches!(member, "fileUri" | "file_uri"),
        Dialect::Interactions => member == "uri",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request with the data `QUJD` in place of each picture, and the paths of these pictures.
    fn filled(dialect: Dialect, body: &'static str) -> (String, Vec<String>) {
        let body = Bytes::from_static(body.as_bytes());
        let head = match dialect {
            Dialect::Generate => read_named_head(&body, "a/b", false),
            _ => read_head(dialect, &body),
        };
        let found = named_pictures(dialect, &body, |_| true, 20).unwrap();
        let pictures = found.values().map(|it| (it, "image/gif", "QUJD"));
        let (body, _) = with_pictures(dialect, &body, &head.unwrap(), pictures).unwrap();
        let mut paths: Vec<_> = found.into_values().map(|it| it.path).collect();
        paths.sort();
        (String::from_utf8(body.to_vec()).unwrap(), paths)
    }

    #[test]
    fn one_picture_more_than_accepted_is_collected() {
        let part = |number| format!(r#"{{"type":"image_url","image_url":"http://a.b/{number}"}}"#);
        let parts: Vec<String> = (0..1_000).map(|number| part(number % 50)).collect();
        let body = format!(r#"{{"messages":[{{"content":[{}]}}]}}"#, parts.join(","));
        for (wanted, accepted, collected) in [("/", 49, 50), ("/", 20, 21), ("/7", 20, 1)] {
            let is_wanted =
                |url: &str| url.contains("b/") && (wanted == "/" || url.ends_with(wanted));
            let found = named_pictures(Dialect::Chat, body.as_bytes(), is_wanted, accepted);
            let found = found.unwrap();
            assert_eq!(found.len(), collected, "{wanted} {accepted}");
            assert!(found.values().all(|picture| picture.count() == 20));
        }
    }

    #[test]
    fn pictures_take_the_places_of_their_urls_and_nothing_else_changes() {
        use Dialect::{Chat, Generate, Interactions, Messages, Responses};
        for (dialect, body, expected, paths) in [
            (
                Chat,
                r#"{"model":"a/b", "messages":[{"role":"user","content":[{"type":"text","text":"http://x/y"},
                {"image_url":{"detail":"low","url":"http:\/\/a.b/1" },"type":"image_url","x":1},
                {"type":"image_url","image_url":"https://a.b/2"},
                {"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}],"url":"http://a.b/"}"#,
                r#"{"model":"a/b", "messages":[{"role":"user","content":[{"type":"text","text":"http://x/y"},
                {"image_url":{"detail":"low","url":"data:image/gif;base64,QUJD" },"type":"image_url","x":1},
                {"type":"image_url","image_url":"data:image/gif;base64,QUJD"},
                {"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}],"url":"http://a.b/"}"#,
                &["messages[0].content[1]", "messages[0].content[2]"][..],
            ),
            (
                Responses,
                r#"{"model":"a/b","input":[{"role":"user","content":[{"type":"input_image","image_url":"http://a.b/1"}]},
                {"type":"function_call","call_id":"c","name":"f","arguments":"{\"image_url\":\"http://a.b/2\"}"},
                {"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"http://a.b/3"}]}]}"#,
                r#"{"model":"a/b","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/gif;base64,QUJD"}]},
                {"type":"function_call","call_id":"c","name":"f","arguments":"{\"image_url\":\"http://a.b/2\"}"},
                {"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"data:image/gif;base64,QUJD"}]}]}"#,
                &["input[0].content[0]", "input[2].output[0]"],
            ),
            (
                Messages,
                r#"{"model":"a/b","max_tokens":1,"messages":[{"role":"user","content":[
                {"type":"image","source":{"type":"url","url":"https://a.b/1"},"cache_control":{"type":"ephemeral"}},
                {"type":"document","source":{"type":"url","url":"https://a.b/x.pdf"}}]},
                {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f",
                "input":{"type":"image","source":{"type":"url","url":"https://a.b/2"}}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[
                {"type":"image","source":{"url":"https://a.b/3","type":"url"}}]}]}]}"#,
                r#"{"model":"a/b","max_tokens":1,"messages":[{"role":"user","content":[
                {"type":"image","source":{"type":"base64","media_type":"image/gif","data":"QUJD"},"cache_control":{"type":"ephemeral"}},
                {"type":"document","source":{"type":"url","url":"https://a.b/x.pdf"}}]},
                {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f",
                "input":{"type":"image","source":{"type":"url","url":"https://a.b/2"}}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[
                {"type":"image","source":{"type":"base64","media_type":"image/gif","data":"QUJD"}}]}]}]}"#,
                &[
                    "messages[0].content[0]",
                    "messages[2].content[0].content[0]",
                ],
            ),
            (
                Generate,
                r#"{"contents":[{"parts":[{"fileData":{"fileUri":"https://a.b/1","mimeType":"image/png"},"x":1},
                {"file_data":{"file_uri":"https://a.b/2.png"}},{"fileData":{"fileUri":"https://a.b/3","mimeType":"video/mp4"}},
                {"functionCall":{"name":"f","args":
                {"fileData":{"fileUri":"https://a.b/5","mimeType":"image/png"}}}}]}]}"#,
                r#"{"contents":[{"parts":[{"inlineData":{"mimeType":"image/gif","data":"QUJD"},"x":1},
                {"inlineData":{"mimeType":"image/gif","data":"QUJD"}},{"fileData":{"fileUri":"https://a.b/3","mimeType":"video/mp4"}},
                {"functionCall":{"name":"f","args":
                {"fileData":{"fileUri":"https://a.b/5","mimeType":"image/png"}}}}]}]}"#,
                &["contents[0].parts[0]", "contents[0].parts[1]"],
            ),
            (
                Interactions,
                r#"{"model":"a/b","store":false,"input":[{"type":"image","uri":"https://a.b/1","resolution":"low"},
                {"type":"user_input","content":[{"mime_type":"image/png","uri":"https://a.b/2","type":"image"}]},
                {"type":"function_result","call_id":"c","result":{"type":"image","uri":"https://a.b/3"}}]}"#,
                r#"{"model":"a/b","store":false,"input":[{"type":"image","data":"QUJD","mime_type":"image/gif","resolution":"low"},
                {"type":"user_input","content":[{"mime_type":"image/gif","data":"QUJD","type":"image"}]},
                {"type":"function_result","call_id":"c","result":{"type":"image","uri":"https://a.b/3"}}]}"#,
                &["input[0]", "input[1].content[0]"],
            ),
            (
                Interactions,
                r#"{"model":"a/b","store":false,"input":{"type":"image","uri":"https://a.b/1"}}"#,
                r#"{"model":"a/b","store":false,"input":{"type":"image","data":"QUJD","mime_type":"image/gif"}}"#,
                &["input"],
            ),
        ] {
            let (changed, found) = filled(dialect, body);
            assert_eq!(changed, expected, "{dialect}");
            assert_eq!(found, paths, "{dialect}");
        }
    }
}

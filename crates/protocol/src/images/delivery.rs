//! Delivers images in the form that the client asked for: a URL or base64.

use super::family::Family;
use super::request::Options;
use crate::canon::data_uri;
use crate::json::patch::Edit;
use crate::json::{Raw, Text};

/// The two members that can hold an image.
const BASE64: &str = "b64_json";
const URL: &str = "url";
/// The maximum length of the head of a data URI.
const HEAD_BYTES_MAX: usize = 80;

/// The form that the client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryForm {
    /// Base64 only.
    Base64,
    /// A URL or a data URI.
    Url,
    /// Not specified: images stay in the member that holds them.
    Either,
}

impl DeliveryForm {
    pub(super) fn of(options: &Options, family: Family) -> Self {
        match (family, options.response_format.as_deref()) {
            // GPT models always answer with base64 (`docs/api/images.md`).
            (Family::Gpt, _) | (_, Some(BASE64)) => Self::Base64,
            (_, Some(URL)) => Self::Url,
            _ => Self::Either,
        }
    }
}

/// The image in an item of an answer or in an event, as the upstream sent it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct SentImage<'a> {
    base64: Option<Member<'a>>,
    url: Option<Member<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct Member<'a> {
    name: Text<'a>,
    /// The value, if it is a string that is not empty.
    text: Option<Text<'a>>,
}

impl<'a> SentImage<'a> {
    /// Records the member if it can hold an image. Returns whether it can.
    pub(super) fn note(&mut self, name: Text<'a>, value: Raw<'a>) -> bool {
        let place = if name.is(BASE64) {
            &mut self.base64
        } else if name.is(URL) {
            &mut self.url
        } else {
            return false;
        };
        let text = value.string().filter(|text| !text.is_empty());
        *place = Some(Member { name, text });
        true
    }

    /// The image in the form for the client. `None` if there is no image.
    pub(super) fn picture(&self, wanted: DeliveryForm) -> Option<ClientImage<'a>> {
        let text = |member: Option<Member<'a>>| member.and_then(|member| member.text);
        let name = |member: Option<Member<'a>>| member.map(|member| member.name);
        let (base64, url) = (name(self.base64), name(self.url));
        let (in_base64, in_url) = (text(self.base64), text(self.url));
        let as_it_is = |name, text| ClientImage {
            name,
            text,
            cut: 0,
            put: String::new(),
            swapped: None,
        };
        if let Some(text) = in_base64 {
            let head = head_length(text.raw());
            if wanted != DeliveryForm::Url || in_url.is_some() {
                return Some(ClientImage {
                    cut: head,
                    ..as_it_is(BASE64, text)
                });
            }
            return Some(ClientImage {
                put: if head == 0 {
                    head_of(text.raw())
                } else {
                    String::new()
                },
                swapped: Some((base64, url)),
                ..as_it_is(URL, text)
            });
        }
        let text = in_url?;
        let head = head_length(text.raw());
        if head == 0 || wanted != DeliveryForm::Base64 {
            return Some(as_it_is(URL, text));
        }
        Some(ClientImage {
            cut: head,
            swapped: Some((base64, url)),
            ..as_it_is(BASE64, text)
        })
    }
}

#[derive(Debug)]
pub(super) struct ClientImage<'a> {
    /// The member that holds the image.
    name: &'static str,
    text: Text<'a>,
    /// The number of bytes to remove from the start of `text`.
    cut: usize,
    /// The text to insert instead of those bytes.
    put: String,
    /// The names of `b64_json` and `url`, if they are swapped.
    swapped: Option<(Option<Text<'a>>, Option<Text<'a>>)>,
}

impl ClientImage<'_> {
    /// The edits in a text whose object starts at `offset`.
    pub(super) fn edits(&self, offset: usize) -> Vec<Edit> {
        let mut edits = Vec::new();
        let (base64, url) = self.swapped.unwrap_or_default();
        for (name, new) in [(base64, URL), (url, BASE64)] {
            if let Some(span) = name.map(|name| name.span()) {
                edits.push(Edit::replace(
                    span.start + offset..span.end + offset,
                    new.as_bytes(),
                ));
            }
        }
        if self.cut > 0 || !self.put.is_empty() {
            let start = self.text.span().start + offset;
            let put = self.put.clone().into_bytes();
            edits.push(Edit::replace(start..start + self.cut, put));
        }
        edits
    }

    pub(super) fn member(&self) -> Vec<u8> {
        let kept = self.text.raw().get(self.cut..).unwrap_or_default();
        format!("\"{}\":\"{}{kept}\"", self.name, self.put).into_bytes()
    }
}

/// The length of the head of a data URI in JSON notation. 0 if there is none.
fn head_length(raw: &str) -> usize {
    const MARK: &str = ";base64,";
    let start = raw.as_bytes().get(..raw.len().min(HEAD_BYTES_MAX));
    let start = start.unwrap_or_default();
    let Some(at) = memchr::memmem::find(start, MARK.as_bytes()) else {
        return 0;
    };
    let head = String::from_utf8_lossy(start.get(..at).unwrap_or_default());
    let head = head.replace("\\/", "/").to_ascii_lowercase();
    if head.starts_with("data:image/") {
        at + MARK.len()
    } else {
        0
    }
}

/// The head that turns base64 into a data URI.
fn head_of(raw: &str) -> String {
    let start: String = raw.chars().take(16).collect();
    data_uri::join(data_uri::sniff(&start.replace("\\/", "/")), "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::patch;
    use crate::json::{Cursor, SyntaxError};

    fn delivered(item: &str, wanted: DeliveryForm) -> String {
        let mut given = SentImage::default();
        Cursor::new(item)
            .object(|cursor, name| {
                given.note(name, cursor.value()?);
                Ok::<(), SyntaxError>(())
            })
            .unwrap();
        let picture = given.picture(wanted);
        let edits = picture.map(|picture| picture.edits(0)).unwrap_or_default();
        let out = patch::apply(&item.to_owned().into(), edits);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn a_picture_comes_in_the_form_that_was_asked_for() {
        use DeliveryForm::{Base64, Either, Url};
        let bare = r#"{"b64_json":"iVBORw0K","n":1}"#;
        let headed = r#"{"b64_json":"data:image/png;base64,iVBORw0K","n":1}"#;
        let uri = r#"{"url":"data:image/png;base64,iVBORw0K","n":1}"#;
        let address = r#"{"url":"https://a/b","n":1}"#;
        let escaped = r#"{"b64_json":null,"url":"data:image\/jpeg;base64,\/9j\/4AAQ"}"#;
        for (given, wanted, expected) in [
            (bare, Base64, bare),
            (bare, Either, bare),
            (bare, Url, uri),
            (headed, Base64, bare),
            (headed, Either, bare),
            (headed, Url, uri),
            (uri, Base64, bare),
            (uri, Either, uri),
            (uri, Url, uri),
            (address, Base64, address),
            (address, Either, address),
            (address, Url, address),
            (escaped, Base64, r#"{"url":null,"b64_json":"\/9j\/4AAQ"}"#),
            (escaped, Url, escaped),
            (
                r#"{"b64_json":"\/9j\/4AAQ"}"#,
                Url,
                r#"{"url":"data:image/jpeg;base64,\/9j\/4AAQ"}"#,
            ),
            (
                r#"{"b64_json":"data:image/webp;base64,UklG","url":"https://a/b"}"#,
                Url,
                r#"{"b64_json":"UklG","url":"https://a/b"}"#,
            ),
            (
                r#"{"url":"","b64_json":null}"#,
                Base64,
                r#"{"url":"","b64_json":null}"#,
            ),
            (
                r#"{"url":"data:text/plain;base64,QQ=="}"#,
                Base64,
                r#"{"url":"data:text/plain;base64,QQ=="}"#,
            ),
            (r#"{"url":7}"#, Url, r#"{"url":7}"#),
        ] {
            assert_eq!(delivered(given, wanted), expected, "{given} {wanted:?}");
        }
    }
}

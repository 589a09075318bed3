//! Reads `input`: a text, with or without an image or a video, in each form that clients send.

use std::ops::Range;

use bytes::Bytes;

use crate::byte_queue::ByteQueue;
use crate::failure::Failure;
use crate::json::{Cursor, Members, Raw, Shape, Spelling};
use crate::request_head;
use crate::video::check;

const PARAM: &str = "input";

#[derive(Debug)]
enum Item {
    /// A bare string.
    Text(Range<usize>),
    /// A content object, unchanged.
    Content(Range<usize>),
}

/// Everything that a video is made from.
#[derive(Debug, Default)]
pub(super) struct Input {
    items: Vec<Item>,
    has_step: bool,
    pub(super) has_text: bool,
    pub(super) images: usize,
    pub(super) videos: usize,
}

/// Reads a text, a content item, a step, or a list of content items or steps. Only one turn is
/// allowed, because the gateway stores no conversation that another turn could continue.
pub(super) fn read(raw: Raw<'_>) -> Result<Input, Failure> {
    let mut input = Input::default();
    match raw.shape() {
        Shape::String => input.text(raw),
        Shape::Object => input.step_or_content(raw)?,
        Shape::Array => each(raw, |item| input.step_or_content(item))?,
        _ => {}
    }
    if input.items.is_empty() {
        let message = "`input` must be a text, an object or an array, not empty.";
        return Err(wrong(message));
    }
    Ok(input)
}

impl Input {
    fn text(&mut self, raw: Raw<'_>) {
        let text = raw.string().map(|text| text.decode_lossy());
        self.has_text |= text.is_some_and(|text| !text.trim().is_empty());
        self.items.push(Item::Text(raw.span()));
    }

    fn step_or_content(&mut self, raw: Raw<'_>) -> Result<(), Failure> {
        let members = Members::nested(raw, "input.", Spelling::One)?;
        let kind = members.string("type")?;
        let role = members.string("role")?;
        match (kind.as_deref(), role.as_deref()) {
            (Some("text" | "image" | "video" | "audio" | "document"), _) => {
                if self.has_step {
                    return Err(wrong("`input` must hold either contents or one step."));
                }
                self.content(raw, &members)
            }
            (Some("user_input"), _) | (None, Some("user")) => {
                if self.has_step || !self.items.is_empty() {
                    return Err(continuation());
                }
                self.has_step = true;
                self.step(&members)
            }
            (Some(kind), _) if is_of_model(kind) => Err(continuation()),
            (None, Some(_)) => Err(continuation()),
            _ => Err(wrong("An item of `input` has no known `type`.")),
        }
    }

    fn step(&mut self, members: &Members<'_>) -> Result<(), Failure> {
        let Some(content) = members.get("content")? else {
            return Ok(());
        };
        let mut one = |raw: Raw<'_>| {
            let members = Members::nested(raw, "input.content.", Spelling::One)?;
            self.content(raw, &members)
        };
        match content.shape() {
            Shape::Object => one(content),
            Shape::Array => each(content, one),
            _ => {
                self.text(content);
                Ok(())
            }
        }
    }

    fn content(&mut self, raw: Raw<'_>, members: &Members<'_>) -> Result<(), Failure> {
        match members.string("type")?.as_deref() {
            Some("text") => {
                let text = members.string("text")?;
                self.has_text |= text.is_some_and(|text| !text.trim().is_empty());
            }
            Some("image") => {
                self.images += 1;
                medium(members, "image/")?;
            }
            Some("video") => {
                self.videos += 1;
                medium(members, "video/")?;
            }
            Some(kind @ ("audio" | "document")) => {
                let message = format!("A video cannot be made from content of type `{kind}`.");
                return Err(Failure::unsupported_parameter(PARAM, message));
            }
            _ => return Err(wrong("An item of `input` has an unknown `type`.")),
        }
        self.items.push(Item::Content(raw.span()));
        Ok(())
    }

    /// Writes the input as one step.
    pub(super) fn write(&self, body: &Bytes, out: &mut ByteQueue) {
        out.copy(b"[{\"type\":\"user_input\",\"content\":[");
        for (number, item) in self.items.iter().enumerate() {
            if number > 0 {
                out.copy(b",");
            }
            match item {
                Item::Content(span) => out.share(body, span.clone()),
                Item::Text(span) => {
                    out.copy(b"{\"type\":\"text\",\"text\":");
                    out.share(body, span.clone());
                    out.copy(b"}");
                }
            }
        }
        out.copy(b"]}]");
    }
}

/// Checks an image or a video, inside the request or at a public URL. Its type must start with
/// `prefix`.
fn medium(members: &Members<'_>, prefix: &str) -> Result<(), Failure> {
    let kind = prefix.trim_end_matches('/');
    let mime = members.string("mime_type")?;
    if mime
        .as_deref()
        .is_some_and(|mime| !mime.starts_with(prefix))
    {
        let message = format!("`mime_type` of an {kind} item must begin with `{prefix}`.");
        return Err(wrong(&message));
    }
    match (members.get("data")?, members.string("uri")?) {
        (Some(data), None) if check::is_base64(data) && mime.is_some() => Ok(()),
        (Some(_), None) if mime.is_none() => Err(wrong(&format!(
            "The {kind} in `input` needs its `mime_type`."
        ))),
        (Some(_), None) => Err(wrong(&format!(
            "`data` of the {kind} in `input` is no base64."
        ))),
        (None, Some(uri)) if is_public(&uri) => Ok(()),
        (None, Some(_)) => {
            let message = format!("The {kind} in `input` must be inline or at a public address.");
            Err(Failure::stateful_not_supported(message).param(PARAM))
        }
        _ => {
            let message = format!("The {kind} in `input` needs exactly one of `data` and `uri`.");
            Err(wrong(&message))
        }
    }
}

/// Whether this is a part of an earlier turn: text, thoughts or calls of a model, or results for
/// it.
fn is_of_model(kind: &str) -> bool {
    matches!(kind, "model_output" | "thought")
        || kind.ends_with("_call")
        || kind.ends_with("_result")
}

fn is_public(uri: &str) -> bool {
    let is_web = uri.starts_with("https://") || uri.starts_with("http://");
    is_web && !request_head::is_stored_address(uri)
}

fn each(
    array: Raw<'_>,
    mut item: impl FnMut(Raw<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let start = array.span().start;
    let mut cursor = Cursor::new(array.text());
    cursor.array(|cursor| item(cursor.value()?.moved(start)))
}

fn wrong(message: &str) -> Failure {
    Failure::invalid(message.to_owned()).param(PARAM)
}

fn continuation() -> Failure {
    let message = "`input` must be one turn: the service keeps no interactions to continue.";
    Failure::stateful_not_supported(message).param(PARAM)
}

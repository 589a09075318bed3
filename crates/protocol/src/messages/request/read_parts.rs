//! Reads the content blocks of a request.

use std::borrow::Cow;
use std::fmt::Display;

use crate::canon::{
    Document, Image, ImageSource, Part, Path, SignedAt, Thought, ToolCall, ToolResult, base64,
    carrier, data_uri, note_unknown,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::typed;
use crate::json::{Cursor, Raw, Shape};
use crate::messages::fields::Fields;
use crate::shared::signature;

/// Reads blocks and collects dropped members.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Paths of members that other dialects do not have.
    pub(super) unknown: Vec<String>,
}

type Parts = Vec<(Path, Part)>;

impl Blocks {
    /// Reads the system prompt: a string or text blocks.
    pub(super) fn system(&mut self, cursor: &mut Cursor<'_>) -> Result<Parts, Failure> {
        let mut parts = Vec::new();
        self.each(cursor, "system", |blocks, index, kind, fields| {
            let path = Path::item("system", index);
            if kind == "text" {
                let text = fields.text("text", "system.text")?;
                push_text(&mut parts, path, text);
                blocks.rest(fields, &path);
            } else {
                parts.push((path, Part::Foreign));
            }
            Ok(())
        })?;
        Ok(parts)
    }

    /// Reads the content of a message: a string or blocks.
    pub(super) fn content(
        &mut self,
        cursor: &mut Cursor<'_>,
        message: Path,
    ) -> Result<Parts, Failure> {
        let mut parts = Vec::new();
        self.each(cursor, "messages.content", |blocks, index, kind, fields| {
            let path = message.inner("content", index);
            blocks.block(kind, fields, path, &mut parts)
        })?;
        Ok(parts)
    }

    /// Calls a function with each block. A string counts as one text block.
    fn each<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        path: &'static str,
        mut block: impl FnMut(&mut Self, usize, &str, &mut Fields<'a>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if cursor.shape()? == Shape::String {
            let text = cursor.value()?;
            return block(self, 0, "text", &mut Fields::with_one_member("text", text));
        }
        typed::array(cursor, path, |cursor, index| {
            let Some(mut fields) = Fields::read(cursor)? else {
                return Err(Failure::invalid(format!("`{path}` must hold objects.")).param(path));
            };
            let Some(kind) = fields.string("type") else {
                let message = format!("Each block of `{path}` must have a `type`.");
                return Err(Failure::invalid(message).param(path));
            };
            block(self, index, &kind, &mut fields)
        })
    }

    fn block(
        &mut self,
        kind: &str,
        fields: &mut Fields<'_>,
        path: Path,
        parts: &mut Parts,
    ) -> Result<(), Failure> {
        match kind {
            "tool_use" => self.tool_use(fields, path, parts)?,
            "tool_result" => self.tool_result(fields, path, parts)?,
            "thinking" => {
                let text = fields.string("thinking").unwrap_or_default().into_owned();
                let value = fields.string("signature").unwrap_or_default();
                let thought = Thought {
                    text,
                    opaque: signature::read(&value, Dialect::Messages),
                    redacted: false,
                };
                parts.push((path, Part::Thought(thought)));
            }
            "redacted_thinking" => {
                let data = fields.text("data", "messages.content.data")?;
                let thought = Thought {
                    text: String::new(),
                    opaque: signature::read(&data, Dialect::Messages),
                    redacted: true,
                };
                parts.push((path, Part::Thought(thought)));
            }
            _ if self.medium(kind, fields, (path, &path), parts)? => {}
            _ => {
                parts.push((path, Part::Foreign));
                return Ok(());
            }
        }
        self.rest(fields, &path);
        Ok(())
    }

    /// Reads a block that users and tools may send. Returns whether other dialects have this kind of block.
    /// Its parts get `path` as their position. `place` is the position of the block itself.
    fn medium(
        &mut self,
        kind: &str,
        fields: &mut Fields<'_>,
        (path, place): (Path, &dyn Display),
        parts: &mut Parts,
    ) -> Result<bool, Failure> {
        match kind {
            "text" => {
                let text = fields.text("text", "messages.content.text")?;
                push_text(parts, path, text);
                Ok(true)
            }
            "image" => {
                let source = fields.take("source").and_then(Fields::of);
                let Some(mut source) = source else {
                    return Ok(false);
                };
                let Some(found) = image_source(&mut source) else {
                    return Ok(false);
                };
                source.report_rest(&format_args!("{place}.source"), &mut self.unknown);
                let image = Image {
                    source: found,
                    detail: None,
                };
                parts.push((path, Part::Image(image)));
                Ok(true)
            }
            "document" => self.document(fields, (path, place), parts),
            // The found text is useful without its source.
            "search_result" => match fields.take("content") {
                Some(content) => {
                    let list = format_args!("{place}.content");
                    self.inner(content, (path, &list), parts)
                }
                None => Ok(false),
            },
            _ => Ok(false),
        }
    }

    fn document(
        &mut self,
        fields: &mut Fields<'_>,
        (path, place): (Path, &dyn Display),
        parts: &mut Parts,
    ) -> Result<bool, Failure> {
        let citations = fields.take("citations").and_then(Fields::of);
        let Some(mut source) = fields.take("source").and_then(Fields::of) else {
            return Ok(false);
        };
        let is_known = match source.string("type").unwrap_or_default().as_ref() {
            "base64" => {
                let data = source.text("data", "messages.content.source.data")?;
                let mime = source.string("media_type");
                let document = Document {
                    mime: mime.map_or_else(|| "application/pdf".to_owned(), Cow::into_owned),
                    data: base64::standard(&data).into_owned(),
                    name: fields.string("title").map(Cow::into_owned),
                };
                parts.push((path, Part::Document(document)));
                true
            }
            "text" => {
                let text = source.text("data", "messages.content.source.data")?;
                push_text(parts, path, text);
                // Text has only one media type, so there is nothing to keep.
                source.take("media_type");
                true
            }
            "content" => match source.take("content") {
                Some(content) => {
                    let list = format_args!("{place}.source.content");
                    self.inner(content, (path, &list), parts)?
                }
                None => false,
            },
            _ => false,
        };
        if !is_known {
            return Ok(false);
        }
        source.report_rest(&format_args!("{place}.source"), &mut self.unknown);
        if let Some(mut citations) = citations {
            // Only `true` is reported, because some clients send the default, `false`.
            if citations.boolean("enabled") == Some(true) {
                note_unknown(&mut self.unknown, format!("{place}.citations.enabled"));
            }
            citations.report_rest(&format_args!("{place}.citations"), &mut self.unknown);
        }
        Ok(true)
    }

    /// Reads the blocks in the member `list` of a block.
    fn inner(
        &mut self,
        content: Raw<'_>,
        (path, list): (Path, &dyn Display),
        parts: &mut Parts,
    ) -> Result<bool, Failure> {
        let before = parts.len();
        let noted = self.unknown.len();
        let mut cursor = Cursor::new(content.text());
        self.each(
            &mut cursor,
            "messages.content.content",
            |blocks, at, kind, fields| {
                let place = format_args!("{list}[{at}]");
                if blocks.medium(kind, fields, (path, &place), parts)? {
                    blocks.rest(fields, &place);
                } else {
                    note_unknown(&mut blocks.unknown, place.to_string());
                }
                Ok(())
            },
        )?;
        let is_known = parts.len() > before;
        if !is_known {
            // A block that is dropped as a whole is reported without its members.
            self.unknown.truncate(noted);
        }
        Ok(is_known)
    }

    fn tool_use(
        &mut self,
        fields: &mut Fields<'_>,
        path: Path,
        parts: &mut Parts,
    ) -> Result<(), Failure> {
        let id = fields.text("id", "messages.content.id")?;
        let (id, carried) = carrier::decode(&id);
        let thoughts = carried.thoughts.into_iter();
        parts.extend(thoughts.map(|thought| (Path::default(), Part::Thought(thought))));
        let arguments = match fields.take("input") {
            Some(input) if input.shape() == Shape::Object => typed::compact(input.text()),
            None => "{}".to_owned(),
            Some(_) => {
                let message = "`messages.content.input` must be an object.";
                return Err(Failure::invalid(message).param("messages.content.input"));
            }
        };
        let call = ToolCall {
            id: id.to_owned(),
            name: fields.text("name", "messages.content.name")?.into_owned(),
            arguments,
            opaque: carried.opaque,
            signed_at: SignedAt::default(),
        };
        parts.push((path, Part::ToolCall(call)));
        // Other dialects have only calls that the model itself makes.
        let caller = fields.take("caller").and_then(Fields::of);
        let Some(mut caller) = caller else {
            return Ok(());
        };
        if caller.string("type").is_some_and(|kind| kind != "direct") {
            note_unknown(&mut self.unknown, format!("{path}.caller"));
        } else {
            caller.report_rest(&format_args!("{path}.caller"), &mut self.unknown);
        }
        Ok(())
    }

    fn tool_result(
        &mut self,
        fields: &mut Fields<'_>,
        path: Path,
        parts: &mut Parts,
    ) -> Result<(), Failure> {
        let id = fields.text("tool_use_id", "messages.content.tool_use_id")?;
        let mut inside = Vec::new();
        if let Some(content) = fields.take("content") {
            let mut cursor = Cursor::new(content.text());
            self.each(
                &mut cursor,
                "messages.content.content",
                |blocks, at, kind, fields| {
                    let path = path.in_result(at);
                    if blocks.medium(kind, fields, (path, &path), &mut inside)? {
                        blocks.rest(fields, &path);
                    } else {
                        note_unknown(&mut blocks.unknown, path.to_string());
                    }
                    Ok(())
                },
            )?;
        }
        let result = ToolResult {
            call_id: carrier::decode(&id).0.to_owned(),
            name: None,
            parts: inside,
            is_error: fields.boolean("is_error").unwrap_or(false),
        };
        parts.push((path, Part::ToolResult(result)));
        Ok(())
    }

    fn rest(&mut self, fields: &mut Fields<'_>, place: &dyn Display) {
        std::mem::take(fields).report_rest(place, &mut self.unknown);
    }
}

fn push_text(parts: &mut Parts, path: Path, text: Cow<'_, str>) {
    if !text.is_empty() {
        parts.push((path, Part::Text(text.into_owned())));
    }
}

/// The source of an image. `None` if only the vendor can resolve it.
fn image_source(source: &mut Fields<'_>) -> Option<ImageSource> {
    match source.string("type")?.as_ref() {
        "base64" => {
            let data = source.string("data")?;
            let mime = source.string("media_type");
            Some(ImageSource::Inline {
                mime: mime.map_or_else(|| data_uri::sniff(&data).to_owned(), Cow::into_owned),
                data: base64::standard(&data).into_owned(),
            })
        }
        "url" => {
            let url = source.string("url")?;
            Some(match data_uri::split(&url) {
                Some((mime, data)) => ImageSource::Inline {
                    mime: if mime.is_empty() {
                        data_uri::sniff(data).to_owned()
                    } else {
                        mime.to_owned()
                    },
                    data: base64::standard(data).into_owned(),
                },
                None => ImageSource::Url(url.into_owned()),
            })
        }
        _ => None,
    }
}

//! Reads the content blocks of a request.

use std::borrow::Cow;

use crate::canon::{
    Document, Image, ImageSource, Part, Path, Thought, ToolCall, ToolResult, base64, carrier,
    data_uri,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::walk;
use crate::json::{Cursor, Raw, Shape};
use crate::messages::fields::Fields;
use crate::signature;

/// Reads blocks, and remembers what it could not carry.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Members of blocks that other dialects do not know.
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
                blocks.rest(fields, "system.");
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
            let mut found = Vec::with_capacity(1);
            blocks.block(kind, fields, path, &mut found)?;
            parts.extend(found.into_iter().map(|part| (path, part)));
            Ok(())
        })?;
        Ok(parts)
    }

    /// Steps through a string or an array of blocks. A string is a text block.
    fn each<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        path: &'static str,
        mut block: impl FnMut(&mut Self, usize, &str, &mut Fields<'a>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if cursor.shape()? == Shape::String {
            let text = cursor.value()?;
            return block(self, 0, "text", &mut Fields::one("text", text));
        }
        walk::array(cursor, path, |cursor, index| {
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
        parts: &mut Vec<Part>,
    ) -> Result<(), Failure> {
        match kind {
            "tool_use" => self.tool_use(fields, parts)?,
            "tool_result" => self.tool_result(fields, path, parts)?,
            "thinking" => {
                let text = fields.string("thinking").unwrap_or_default().into_owned();
                let value = fields.string("signature").unwrap_or_default();
                parts.push(Part::Thought(Thought {
                    text,
                    opaque: signature::read(&value, Dialect::Messages),
                    redacted: false,
                }));
            }
            "redacted_thinking" => {
                let data = fields.text("data", "messages.content.data")?;
                parts.push(Part::Thought(Thought {
                    text: String::new(),
                    opaque: signature::read(&data, Dialect::Messages),
                    redacted: true,
                }));
            }
            _ if self.medium(kind, fields, parts)? => {}
            _ => {
                parts.push(Part::Foreign);
                return Ok(());
            }
        }
        self.rest(fields, "messages.content.");
        Ok(())
    }

    /// Reads a block that a user or a tool may send; says whether it was one that other dialects
    /// can carry.
    fn medium(
        &mut self,
        kind: &str,
        fields: &mut Fields<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<bool, Failure> {
        match kind {
            "text" => {
                let text = fields.text("text", "messages.content.text")?;
                if !text.is_empty() {
                    parts.push(Part::Text(text.into_owned()));
                }
                Ok(true)
            }
            "image" => {
                let source = fields.take("source").and_then(image_source);
                let image = source.map(|source| Image {
                    source,
                    detail: None,
                });
                let known = image.is_some();
                parts.extend(image.map(Part::Image));
                Ok(known)
            }
            "document" => self.document(fields, parts),
            // Found text is worth having without its source.
            "search_result" => match fields.take("content") {
                Some(content) => self.inner(content, parts),
                None => Ok(false),
            },
            _ => Ok(false),
        }
    }

    fn document(
        &mut self,
        fields: &mut Fields<'_>,
        parts: &mut Vec<Part>,
    ) -> Result<bool, Failure> {
        // The default is spelt out by some clients.
        if let Some(mut citations) = fields.take("citations").and_then(Fields::of)
            && citations.boolean("enabled") == Some(true)
        {
            self.unknown.push("messages.content.citations".to_owned());
        }
        let Some(mut source) = fields.take("source").and_then(Fields::of) else {
            return Ok(false);
        };
        match source.string("type").unwrap_or_default().as_ref() {
            "base64" => {
                let data = source.text("data", "messages.content.source.data")?;
                let mime = source.string("media_type");
                parts.push(Part::Document(Document {
                    mime: mime.map_or_else(|| "application/pdf".to_owned(), Cow::into_owned),
                    data: base64::standard(&data).into_owned(),
                    name: fields.string("title").map(Cow::into_owned),
                }));
                Ok(true)
            }
            "text" => {
                let text = source.text("data", "messages.content.source.data")?;
                if !text.is_empty() {
                    parts.push(Part::Text(text.into_owned()));
                }
                Ok(true)
            }
            "content" => match source.take("content") {
                Some(content) => self.inner(content, parts),
                None => Ok(false),
            },
            _ => Ok(false),
        }
    }

    /// Reads blocks inside a block.
    fn inner(&mut self, content: Raw<'_>, parts: &mut Vec<Part>) -> Result<bool, Failure> {
        let mut known = true;
        let mut cursor = Cursor::new(content.text());
        self.each(
            &mut cursor,
            "messages.content.content",
            |blocks, _, kind, fields| {
                known &= blocks.medium(kind, fields, parts)?;
                blocks.rest(fields, "messages.content.content.");
                Ok(())
            },
        )?;
        Ok(known)
    }

    fn tool_use(&mut self, fields: &mut Fields<'_>, parts: &mut Vec<Part>) -> Result<(), Failure> {
        let id = fields.text("id", "messages.content.id")?;
        let (id, carried) = carrier::unload(&id);
        let thoughts = carried.thoughts.into_iter();
        parts.extend(thoughts.map(Part::Thought));
        let arguments = match fields.take("input") {
            Some(input) if input.shape() == Shape::Object => walk::compact(input.text()),
            None => "{}".to_owned(),
            Some(_) => {
                let message = "`messages.content.input` must be an object.";
                return Err(Failure::invalid(message).param("messages.content.input"));
            }
        };
        parts.push(Part::ToolCall(ToolCall {
            id: id.to_owned(),
            name: fields.text("name", "messages.content.name")?.into_owned(),
            arguments,
            opaque: carried.opaque,
        }));
        // A call by the model itself is what every other dialect knows.
        let caller = fields.take("caller").and_then(Fields::of);
        let caller = caller.and_then(|mut caller| caller.string("type"));
        if caller.is_some_and(|caller| caller != "direct") {
            self.unknown.push("messages.content.caller".to_owned());
        }
        Ok(())
    }

    fn tool_result(
        &mut self,
        fields: &mut Fields<'_>,
        path: Path,
        parts: &mut Vec<Part>,
    ) -> Result<(), Failure> {
        let id = fields.text("tool_use_id", "messages.content.tool_use_id")?;
        let mut inside = Vec::new();
        if let Some(content) = fields.take("content") {
            let mut cursor = Cursor::new(content.text());
            self.each(
                &mut cursor,
                "messages.content.content",
                |blocks, at, kind, fields| {
                    if blocks.medium(kind, fields, &mut inside)? {
                        blocks.rest(fields, "messages.content.content.");
                    } else {
                        blocks.unknown.push(format!("{path}.content[{at}]"));
                    }
                    Ok(())
                },
            )?;
        }
        parts.push(Part::ToolResult(ToolResult {
            call_id: carrier::unload(&id).0.to_owned(),
            name: None,
            parts: inside,
            is_error: fields.boolean("is_error").unwrap_or(false),
        }));
        Ok(())
    }

    fn rest(&mut self, fields: &mut Fields<'_>, path: &str) {
        std::mem::take(fields).left(path, &mut self.unknown);
    }
}

fn push_text(parts: &mut Parts, path: Path, text: Cow<'_, str>) {
    if !text.is_empty() {
        parts.push((path, Part::Text(text.into_owned())));
    }
}

/// Where a picture is; nothing if only this dialect's vendor could find it.
fn image_source(source: Raw<'_>) -> Option<ImageSource> {
    let mut source = Fields::of(source)?;
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

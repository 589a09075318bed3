//! Writes the system prompt and the conversation in the notation of Converse.
//!
//! A block is an object with one member, which names its kind. If the input up to a block is to be cached, a cache
//! point follows the block.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::canon::base64::Encoder;
use crate::canon::{Dropped, Path, base64};
use crate::failure::Failure;
use crate::json::write::{self, Object};
use crate::json::{Cursor, Raw, Shape};
use crate::messages::call_id::plain_id;
use crate::messages::fields::Fields;

const CALL_ID_BYTES_MAX: usize = 64;
/// The number of bytes of a longer id that are kept in its replacement.
const CALL_ID_BYTES_KEPT: usize = 48;
/// The maximum length of a document's name. It leaves room for an appended number.
const DOCUMENT_NAME_CHARS: usize = 180;

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) role: String,
    /// Blocks and cache points, as JSON.
    pub(super) blocks: Vec<Vec<u8>>,
}

/// The state of the conversation while it is written.
pub(super) struct Content<'d> {
    dropped: &'d mut Dropped,
    /// Whether there are tool calls or tool results.
    pub(super) has_calls: bool,
    /// The names of the documents so far. Upstreams require them to be unique.
    documents: HashSet<String>,
    /// The last number that was appended to make a name unique, or the number of documents if that is larger.
    /// It never decreases, so no choice of titles makes the search for a unique name long.
    document_number: usize,
    /// Replacements for call ids that are not allowed, by the original id.
    call_ids: HashMap<String, String>,
}

/// Writes values as an array.
pub(super) fn write_joined(out: &mut Vec<u8>, values: &[Vec<u8>]) {
    write::array(out, |it| {
        for value in values {
            it.value(|out| out.extend_from_slice(value));
        }
    });
}

pub(super) fn is_object(value: &Raw<'_>) -> bool {
    value.shape() == Shape::Object
}

/// The cache point, which says that the input up to here is cached.
pub(super) fn write_cache_point(control: Raw<'_>) -> Vec<u8> {
    let ttl = Fields::of(control).and_then(|mut members| members.string("ttl"));
    single_member("cachePoint", |it| {
        it.text("type", "default");
        if let Some(ttl) = &ttl {
            it.text("ttl", ttl);
        }
    })
}

/// An object with one member, which is named `kind`.
fn single_member(kind: &str, write: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write::object(&mut out, |it| {
        it.object(kind, write);
    });
    out
}

fn text_block(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    write::object(&mut out, |it| {
        it.text("text", text);
    });
    out
}

/// Whether a text is only white space. Upstreams refuse such texts.
fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn invalid(path: Path, message: &'static str) -> Failure {
    Failure::invalid(message).param(path.to_string())
}

impl<'d> Content<'d> {
    pub(super) fn new(dropped: &'d mut Dropped) -> Self {
        Self {
            dropped,
            has_calls: false,
            documents: HashSet::new(),
            document_number: 0,
            call_ids: HashMap::new(),
        }
    }

    pub(super) fn system(&mut self, system: Raw<'_>) -> Result<Vec<Vec<u8>>, Failure> {
        self.blocks("system", system, None)
    }

    /// The messages. Adjacent messages of the same role become one, because upstreams want the roles to alternate.
    pub(super) fn turns(&mut self, messages: Raw<'_>) -> Result<Vec<Turn>, Failure> {
        let not_a_list = || Failure::invalid("`messages` must hold objects.").param("messages");
        if messages.shape() != Shape::Array {
            return Err(not_a_list());
        }
        let mut turns: Vec<Turn> = Vec::new();
        let mut place = 0;
        Cursor::new(messages.text()).array(|cursor| {
            let path = Path::item("messages", place);
            place += 1;
            let mut message = Fields::of(cursor.value()?).ok_or_else(not_a_list)?;
            let role = message.text("role", "messages.role")?;
            let content = message.take("content");
            let content = content.ok_or_else(|| invalid(path, "A message needs `content`."))?;
            let mut blocks = self.blocks("messages", content, Some(path))?;
            if blocks.is_empty() && role == "assistant" {
                return Ok(());
            }
            if blocks.is_empty() {
                // Without this turn, the model would not know that the user asked something.
                return Err(invalid(
                    path,
                    "Nothing of this turn can be sent to this model.",
                ));
            }
            match turns.last_mut() {
                Some(before) if before.role == role => before.blocks.append(&mut blocks),
                _ => turns.push(Turn {
                    role: role.into_owned(),
                    blocks,
                }),
            }
            Ok::<(), Failure>(())
        })?;
        if turns.is_empty() {
            return Err(Failure::invalid("The request says nothing to the model."));
        }
        Ok(turns)
    }

    /// The blocks of a list and their cache points. `message` is the path of the message if the list is its
    /// `content`.
    fn blocks(
        &mut self,
        list: &'static str,
        content: Raw<'_>,
        message: Option<Path>,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        if let Some(text) = content.string() {
            let text = text.decode_lossy();
            return Ok(if is_blank(&text) {
                Vec::new()
            } else {
                vec![text_block(&text)]
            });
        }
        if content.shape() != Shape::Array {
            let message = format!("`{list}` must hold a text or a list of blocks.");
            return Err(Failure::invalid(message).param(list));
        }
        let mut written = Vec::new();
        let mut place = 0;
        Cursor::new(content.text()).array(|cursor| {
            let path = match message {
                Some(message) => message.inner("content", place),
                None => Path::item(list, place),
            };
            place += 1;
            let block = Fields::of(cursor.value()?);
            let mut block = block.ok_or_else(|| invalid(path, "A block must be an object."))?;
            let cache = block.take("cache_control").filter(is_object);
            if let Some(found) = self.block(path, &mut block)? {
                written.push(found);
                written.extend(cache.map(write_cache_point));
                self.drop_rest(path, block);
            }
            Ok::<(), Failure>(())
        })?;
        Ok(written)
    }

    /// Reports the members of a block that were not written.
    fn drop_rest(&mut self, path: Path, block: Fields<'_>) {
        let mut unknown = Vec::new();
        block.report_rest(&path, &mut unknown);
        for name in &unknown {
            self.dropped.name(name);
        }
    }

    /// A block. `None` if it is empty, or of a kind that only the vendor's own API has.
    fn block(&mut self, path: Path, block: &mut Fields<'_>) -> Result<Option<Vec<u8>>, Failure> {
        let kind = block.string("type").unwrap_or_default();
        let written = match &*kind {
            "text" | "image" | "document" => return self.medium(path, &kind, block),
            "tool_use" => {
                self.has_calls = true;
                let id = self.call_id(&block.text("id", "messages.content.id")?);
                let name = block.text("name", "messages.content.name")?;
                let input = block.take("input").filter(is_object);
                single_member("toolUse", |it| {
                    it.text("toolUseId", &id).text("name", &name);
                    it.raw("input", input.as_ref().map_or("{}", Raw::text));
                })
            }
            "tool_result" => {
                self.has_calls = true;
                let id = block.text("tool_use_id", "messages.content.tool_use_id")?;
                let id = self.call_id(&id);
                let is_error = block.boolean("is_error") == Some(true);
                let content = match block.take("content") {
                    Some(content) => self.result(path, content)?,
                    None => Vec::new(),
                };
                single_member("toolResult", |it| {
                    it.text("toolUseId", &id);
                    it.value("content", |out| write_joined(out, &content));
                    if is_error {
                        it.text("status", "error");
                    }
                })
            }
            "thinking" => {
                let text = block.string("thinking").unwrap_or_default();
                let signature = block.string("signature").filter(|it| !it.is_empty());
                single_member("reasoningContent", |it| {
                    it.object("reasoningText", |it| {
                        it.text("text", &text);
                        if let Some(signature) = &signature {
                            it.text("signature", signature);
                        }
                    });
                })
            }
            "redacted_thinking" => {
                let data = block.text("data", "messages.content.data")?;
                single_member("reasoningContent", |it| {
                    it.text("redactedContent", &data);
                })
            }
            _ => {
                self.dropped.path(path);
                return Ok(None);
            }
        };
        Ok(Some(written))
    }

    /// A text, an image or a document. Tool results may contain these too.
    fn medium(
        &mut self,
        path: Path,
        kind: &str,
        block: &mut Fields<'_>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        match kind {
            "text" => {
                let text = block.string("text").unwrap_or_default();
                Ok((!is_blank(&text)).then(|| text_block(&text)))
            }
            "image" => image(path, block.take("source")).map(Some),
            _ => self.document(path, block).map(Some),
        }
    }

    /// The content of a tool's result.
    fn result(&mut self, path: Path, content: Raw<'_>) -> Result<Vec<Vec<u8>>, Failure> {
        if let Some(text) = content.string() {
            let text = text.decode_lossy();
            return Ok(if is_blank(&text) {
                Vec::new()
            } else {
                vec![text_block(&text)]
            });
        }
        if content.shape() != Shape::Array {
            return Err(invalid(
                path,
                "`content` must be a text or a list of blocks.",
            ));
        }
        let mut written = Vec::new();
        let mut place = 0;
        Cursor::new(content.text()).array(|cursor| {
            let path = path.in_result(place);
            place += 1;
            let block = Fields::of(cursor.value()?);
            let mut block = block.ok_or_else(|| invalid(path, "A block must be an object."))?;
            let kind = block.string("type").unwrap_or_default();
            if matches!(&*kind, "text" | "image" | "document") {
                written.extend(self.medium(path, &kind, &mut block)?);
                self.drop_rest(path, block);
            } else {
                self.dropped.path(path);
            }
            Ok::<(), Failure>(())
        })?;
        Ok(written)
    }

    fn document(&mut self, path: Path, block: &mut Fields<'_>) -> Result<Vec<u8>, Failure> {
        let mut source = block
            .take("source")
            .and_then(Fields::of)
            .unwrap_or_default();
        let kind = source.string("type").unwrap_or_default();
        let mime = source.string("media_type").unwrap_or_default();
        let data = source.string("data").unwrap_or_default();
        let (format, bytes) = match (&*kind, &*mime) {
            ("base64", "application/pdf") => {
                ("pdf", Cow::Owned(base64::standard(&data).into_owned()))
            }
            ("text", _) => {
                let mut encoder = Encoder::default();
                encoder.push(data.as_bytes());
                ("txt", Cow::Owned(encoder.finish()))
            }
            _ => {
                let message = "Documents for this model must be inline: PDF or text.";
                return Err(invalid(path, message));
            }
        };
        let bytes: Cow<'_, str> = bytes;
        let title = block.string("title").unwrap_or_default();
        let name = self.document_name(&title);
        let context = block.string("context").filter(|it| !is_blank(it));
        let cites = block.take("citations").and_then(Fields::of);
        let cites = cites.is_some_and(|mut it| it.boolean("enabled") == Some(true));
        Ok(single_member("document", |it| {
            it.text("format", format).text("name", &name);
            it.object("source", |it| {
                it.text("bytes", &bytes);
            });
            if let Some(context) = &context {
                it.text("context", context);
            }
            if cites {
                it.object("citations", |it| {
                    it.boolean("enabled", true);
                });
            }
        }))
    }

    /// The name of a document, which is required. Only letters, digits, single spaces and a few symbols are allowed.
    fn document_name(&mut self, title: &str) -> String {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-()[]".contains(c);
        let words = title
            .split(|c: char| !is_allowed(c))
            .filter(|it| !it.is_empty());
        let plain: String = words.collect::<Vec<_>>().join(" ");
        let plain: String = plain.chars().take(DOCUMENT_NAME_CHARS).collect();
        let plain = plain.trim();
        let base = if plain.is_empty() { "document" } else { plain };
        let mut name = base.to_owned();
        self.document_number = self.document_number.max(self.documents.len());
        while !self.documents.insert(name.clone()) {
            self.document_number += 1;
            name = format!("{base} {}", self.document_number);
        }
        name
    }

    /// The id of a call as it is sent. Clients may send ids from other models, which can be longer.
    fn call_id(&mut self, id: &str) -> String {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
        if (1..=CALL_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_allowed) {
            return id.to_owned();
        }
        let number = self.call_ids.len();
        let given = self.call_ids.entry(id.to_owned()).or_insert_with(|| {
            let mut plain = plain_id(id);
            plain.truncate(CALL_ID_BYTES_KEPT);
            format!("{plain}_{number}")
        });
        given.clone()
    }
}

/// An image, which must be inline.
fn image(path: Path, source: Option<Raw<'_>>) -> Result<Vec<u8>, Failure> {
    let mut source = source.and_then(Fields::of).unwrap_or_default();
    let mime = source.string("media_type").unwrap_or_default();
    let format = match &*mime {
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/png" => "png",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => "",
    };
    match source.string("data") {
        Some(data) if !format.is_empty() => Ok(single_member("image", |it| {
            it.text("format", format);
            it.object("source", |it| {
                it.text("bytes", &base64::standard(&data));
            });
        })),
        _ => {
            let message = "Images for this model must be inline: JPEG, PNG, GIF or WebP.";
            Err(invalid(path, message))
        }
    }
}

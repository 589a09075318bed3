//! Reads the content blocks of a message.

use super::member::Member;
use super::refusal::Refusal;
use super::signature;
use crate::media::{self, MediaError};
use crate::model::{Media, MediaKind, PastCall, Source};
use crate::seed::Seed;
use serde_json::Value;

const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];
/// The prefixes of the ids of calls with and without a preceding thought. With a thought, its tag follows the prefix.
const ID_AFTER_THOUGHT: &str = "toolu_01SimT";
const ID_WITHOUT_THOUGHT: &str = "toolu_01SimN";
const TAG_LENGTH: usize = 6;

#[derive(Debug)]
pub(super) enum Block {
    Text(String),
    Media(Media),
    Call(PastCall),
    Result(ToolResult),
    /// A thought with a valid signature. The tag binds the following calls to the thought.
    Thought {
        tag: String,
    },
}

#[derive(Debug)]
pub(super) struct ToolResult {
    pub(super) call_id: String,
    pub(super) text: String,
    pub(super) media: Vec<Media>,
    pub(super) failed: bool,
}

/// Creates the id of a new call. It encodes which thought came before the call, if any.
pub(super) fn call_id(thought: Option<&str>, seed: &mut Seed) -> String {
    match thought {
        Some(opaque) => format!("{ID_AFTER_THOUGHT}{}{}", tag(opaque), seed.letters(8)),
        None => format!("{ID_WITHOUT_THOUGHT}{}", seed.letters(14)),
    }
}

/// Reads the tag of the thought before a call from the id of the call.
pub(super) fn thought_of(call_id: &str) -> Option<&str> {
    call_id.strip_prefix(ID_AFTER_THOUGHT)?.get(..TAG_LENGTH)
}

fn tag(opaque: &str) -> String {
    Seed::of(&[opaque.as_bytes()]).letters(TAG_LENGTH)
}

pub(super) fn of_user(value: &Value, path: &str) -> Result<Block, Refusal> {
    let tags = ["document", "image", "search_result", "text", "tool_result"];
    let (tag, block) = tagged(value, path, &tags)?;
    Ok(match tag {
        "text" => Block::Text(text(&block)?),
        "tool_result" => Block::Result(tool_result(&block)?),
        "search_result" => Block::Text(search_result(&block)?),
        _ => Block::Media(media(tag, &block)?),
    })
}

pub(super) fn of_assistant(value: &Value, path: &str, model: &str) -> Result<Block, Refusal> {
    let tags = ["redacted_thinking", "text", "thinking", "tool_use"];
    let (kind, block) = tagged(value, path, &tags)?;
    match kind {
        "text" => text(&block).map(Block::Text),
        "tool_use" => tool_use(&block).map(Block::Call),
        "thinking" => {
            block.refuse_unknown(&["type", "thinking", "signature"])?;
            let thinking = block.required_text("thinking")?;
            let signed = block.required_text("signature")?;
            if !signature::is_intact(model, thinking, signed) {
                return Err(Refusal::at(path, "Invalid `signature` in `thinking` block"));
            }
            Ok(Block::Thought { tag: tag(signed) })
        }
        _ => {
            block.refuse_unknown(&["type", "data"])?;
            let data = block.required_text("data")?;
            if !signature::is_intact_redaction(model, data) {
                return Err(Refusal::at(
                    path,
                    "Invalid `data` in `redacted_thinking` block",
                ));
            }
            Ok(Block::Thought { tag: tag(data) })
        }
    }
}

/// Reads a list that may contain only text blocks, and joins their texts.
pub(super) fn texts(owner: &Member<'_>, name: &str) -> Result<String, Refusal> {
    let mut all = Vec::new();
    for (index, value) in owner.list(name)?.unwrap_or_default().iter().enumerate() {
        let path = owner.path(&format!("{name}.{index}"));
        let (_, block) = tagged(value, &path, &["text"])?;
        all.push(text(&block)?);
    }
    Ok(all.join("\n"))
}

/// Reads the type tag of a block, and returns the block with the tag in its path, as in the vendor's errors.
fn tagged<'a>(
    value: &'a Value,
    path: &str,
    tags: &[&str],
) -> Result<(&'a str, Member<'a>), Refusal> {
    let tag = Member::object(value, path)?.tag(tags)?;
    Ok((tag, Member::object(value, format!("{path}.{tag}"))?))
}

fn text(block: &Member<'_>) -> Result<String, Refusal> {
    block.refuse_unknown(&["type", "text", "cache_control", "citations"])?;
    let text = block.required_text("text")?;
    if text.is_empty() {
        return Err(Refusal::at(
            "messages",
            "text content blocks must be non-empty",
        ));
    }
    if text.trim().is_empty() {
        return Err(Refusal::at(
            "messages",
            "text content blocks must contain non-whitespace text",
        ));
    }
    Ok(text.to_owned())
}

fn tool_use(block: &Member<'_>) -> Result<PastCall, Refusal> {
    block.refuse_unknown(&[
        "type",
        "id",
        "name",
        "input",
        "cache_control",
        "caller",
        "toolset_name",
    ])?;
    let id = block.required_text("id")?;
    let legal = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
    if id.is_empty() || !id.chars().all(legal) {
        return Err(block.wrong("id", "String should match pattern '^[a-zA-Z0-9_-]+$'"));
    }
    block.required_child("input")?;
    Ok(PastCall {
        id: id.to_owned(),
        name: block.required_text("name")?.to_owned(),
        arguments: block.required("input")?.to_string(),
    })
}

fn tool_result(block: &Member<'_>) -> Result<ToolResult, Refusal> {
    block.refuse_unknown(&[
        "type",
        "tool_use_id",
        "content",
        "is_error",
        "cache_control",
    ])?;
    let mut result = ToolResult {
        call_id: block.required_text("tool_use_id")?.to_owned(),
        text: String::new(),
        media: Vec::new(),
        failed: block.flag("is_error")?.unwrap_or(false),
    };
    if let Some(Value::String(text)) = block.get("content") {
        result.text.clone_from(text);
        return Ok(result);
    }
    let mut texts = Vec::new();
    for (index, value) in block
        .list("content")?
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        let path = block.path(&format!("content.{index}"));
        let tags = ["document", "image", "search_result", "text"];
        let (tag, inner) = tagged(value, &path, &tags)?;
        match tag {
            "text" => texts.push(text(&inner)?),
            "search_result" => texts.push(search_result(&inner)?),
            _ => result.media.push(media(tag, &inner)?),
        }
    }
    result.text = texts.join("\n");
    Ok(result)
}

fn search_result(block: &Member<'_>) -> Result<String, Refusal> {
    block.refuse_unknown(&[
        "type",
        "source",
        "title",
        "content",
        "citations",
        "cache_control",
    ])?;
    let title = block.required_text("title")?;
    block.required_text("source")?;
    Ok(format!("{title}: {}", texts(block, "content")?))
}

fn media(tag: &str, block: &Member<'_>) -> Result<Media, Refusal> {
    if tag == "image" {
        block.refuse_unknown(&["type", "source", "cache_control", "transformations"])?;
        return image(&block.required_child("source")?);
    }
    block.refuse_unknown(&[
        "type",
        "source",
        "title",
        "context",
        "citations",
        "cache_control",
    ])?;
    document(&block.required_child("source")?)
}

fn image(source: &Member<'_>) -> Result<Media, Refusal> {
    match source.tag(&["base64", "file", "url"])? {
        "base64" => {
            source.refuse_unknown(&["type", "media_type", "data"])?;
            source.required("media_type")?;
            let declared = source
                .one_of("media_type", IMAGE_TYPES)?
                .unwrap_or_default();
            let data = source.required_text("data")?;
            let image = media::of_base64(MediaKind::Image, declared, data)
                .map_err(|_| source.wrong("base64.data", "Invalid base64 data"))?;
            check_type(&image, declared, source)?;
            Ok(image)
        }
        "url" => linked(MediaKind::Image, source),
        _ => Err(no_file(source)),
    }
}

/// Refuses an image whose bytes are recognized as another type of image than the declared one.
fn check_type(image: &Media, declared: &str, source: &Member<'_>) -> Result<(), Refusal> {
    let Source::Inline { format, .. } = &image.source else {
        return Ok(());
    };
    let seen = format!("image/{}", format.to_ascii_lowercase());
    if seen == declared || !IMAGE_TYPES.contains(&seen.as_str()) {
        return Ok(());
    }
    Err(source.wrong(
        "base64.data",
        format!(
            "The image was specified using the {declared} media type, but the image appears to be a \
             {seen} image"
        ),
    ))
}

fn document(source: &Member<'_>) -> Result<Media, Refusal> {
    match source.tag(&["base64", "content", "file", "text", "url"])? {
        "base64" => {
            source.required("media_type")?;
            source.one_of("media_type", &["application/pdf"])?;
            media::of_base64(
                MediaKind::File,
                "application/pdf",
                source.required_text("data")?,
            )
            .map_err(|_| source.wrong("base64.data", "Invalid base64 data"))
        }
        "text" => {
            source.required("media_type")?;
            source.one_of("media_type", &["text/plain"])?;
            Ok(plain(source.required_text("data")?))
        }
        "content" => match source.required("content")? {
            Value::String(text) => Ok(plain(text)),
            _ => Ok(plain(&texts(source, "content")?)),
        },
        "url" => linked(MediaKind::File, source),
        _ => Err(no_file(source)),
    }
}

fn plain(text: &str) -> Media {
    Media {
        kind: MediaKind::File,
        source: Source::Inline {
            format: "text".to_owned(),
            bytes: text.len() as u64,
            pixels: None,
        },
        low_detail: false,
    }
}

fn linked(kind: MediaKind, source: &Member<'_>) -> Result<Media, Refusal> {
    source.refuse_unknown(&["type", "url"])?;
    let url = source.required_text("url")?;
    if !url.starts_with("https://") {
        return Err(source.wrong("url.url", "Only HTTPS URLs are supported."));
    }
    media::of_url(kind, url).map_err(|error| {
        let why = match error {
            MediaError::NoUrl | MediaError::NotBase64 => "Invalid URL",
        };
        source.wrong("url.url", why)
    })
}

fn no_file(source: &Member<'_>) -> Refusal {
    let id = source.get("file_id").and_then(Value::as_str).unwrap_or("");
    source.wrong("file.file_id", format!("File not found: {id}"))
}

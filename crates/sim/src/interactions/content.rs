//! Reads the content items of users, of the model and of tool results.

use crate::google::{Field, Refusal, Spelling, linked, of_blob};
use crate::model::Media;
use serde_json::Value;

const TEXT: &[&str] = &["annotations", "text", "type"];
const MEDIA: &[&str] = &[
    "channels",
    "data",
    "mime_type",
    "name",
    "processing",
    "resolution",
    "sample_rate",
    "type",
    "uri",
];
/// The types of content items. Items of other types are steps.
const TYPES: &[&str] = &["text", "image", "audio", "document", "video"];

/// The texts and the media, each in order.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) texts: Vec<String>,
    pub(super) media: Vec<Media>,
}

impl Contents {
    /// The texts, joined.
    pub(super) fn text(&self) -> String {
        self.texts.join("\n")
    }

    pub(super) fn add(&mut self, content: &Value, path: &str) -> Result<(), Refusal> {
        let kind = content.get("type").and_then(Value::as_str);
        if kind == Some("text") {
            let text = Field::object(content, path, Spelling::Snake, TEXT)?;
            self.texts.push(text.required_text("text")?.to_owned());
            return Ok(());
        }
        let Some(kind) = kind.filter(|kind| TYPES.contains(kind)) else {
            return Err(Refusal::invalid(format!(
                "Invalid value for '{path}.type': {}.",
                kind.unwrap_or("missing")
            )));
        };
        let media = Field::object(content, path, Spelling::Snake, MEDIA)?;
        self.media.push(read_media(&media, kind)?);
        Ok(())
    }
}

/// Whether a value is a content item and not a step.
pub(super) fn is_content(value: &Value) -> bool {
    let kind = value.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| TYPES.contains(&kind))
}

/// Reads a list of content items.
pub(super) fn read(list: &[Value], path: &str) -> Result<Contents, Refusal> {
    let mut contents = Contents::default();
    for (index, content) in list.iter().enumerate() {
        contents.add(content, &format!("{path}[{index}]"))?;
    }
    Ok(contents)
}

fn read_media(media: &Field<'_>, kind: &str) -> Result<Media, Refusal> {
    media.word("resolution", &["low", "medium", "high", "ultra_high"])?;
    let usual = match kind {
        "image" => "image/png",
        "audio" => "audio/wav",
        _ => "application/octet-stream",
    };
    let mime_type = media.text("mime_type")?.unwrap_or(usual);
    let mut read = match (media.text("data")?, media.text("uri")?) {
        (Some(data), None) => of_blob(mime_type, data, &media.path("data"))?,
        (None, Some(uri)) => linked(mime_type, uri, &media.path("uri"))?,
        _ => {
            return Err(Refusal::invalid(format!(
                "Exactly one of '{}' and 'uri' is required.",
                media.path("data")
            )));
        }
    };
    read.low_detail = media.text("resolution")? == Some("low");
    Ok(read)
}

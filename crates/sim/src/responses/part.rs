//! Reads the content of messages and of tool outputs.

use crate::media;
use crate::model::{Media, MediaKind};
use crate::openai::{Member, Refusal, bad_image};
use serde_json::Value;

/// The author of a content list, which determines the allowed parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    User,
    Assistant,
    System,
    Tool,
}

#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) text: String,
    pub(super) media: Vec<Media>,
}

/// Reads content: a string, or a list of the parts that the author may use.
pub(super) fn read(owner: &Member<'_>, name: &str, of: Author) -> Result<Contents, Refusal> {
    let mut contents = Contents::default();
    if let Value::String(text) = owner.required(name)? {
        contents.text.clone_from(text);
        return Ok(contents);
    }
    for (index, part) in owner.list(name)?.unwrap_or_default().iter().enumerate() {
        let path = owner.path(&format!("{name}[{index}]"));
        read_part(&Member::object(part, path)?, of, &mut contents)?;
    }
    Ok(contents)
}

fn read_part(part: &Member<'_>, of: Author, contents: &mut Contents) -> Result<(), Refusal> {
    let allowed: &[&str] = match of {
        Author::User => &["input_text", "input_image", "input_file", "input_audio"],
        Author::Assistant => &["output_text", "refusal"],
        Author::System => &["input_text"],
        Author::Tool => &["input_text", "input_image", "input_file"],
    };
    part.required("type")?;
    match part.one_of("type", allowed)? {
        Some("input_image") => contents.media.push(image(part)?),
        Some("input_file") => contents.media.push(file(part)?),
        Some("input_audio") => contents.media.push(audio(part)?),
        Some("refusal") => contents.push_text(part.required_text("refusal")?),
        _ => contents.push_text(part.required_text("text")?),
    }
    Ok(())
}

impl Contents {
    fn push_text(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }
}

fn image(part: &Member<'_>) -> Result<Media, Refusal> {
    no_file_id(part)?;
    let detail = part.one_of("detail", &["auto", "low", "high", "original"])?;
    let mut media = media::of_url(MediaKind::Image, part.required_text("image_url")?)
        .map_err(|error| bad_image(error, part.path("image_url")))?;
    media.low_detail = detail == Some("low");
    Ok(media)
}

fn file(part: &Member<'_>) -> Result<Media, Refusal> {
    no_file_id(part)?;
    part.text("filename")?;
    let (name, data) = match part.text("file_url")? {
        Some(url) => ("file_url", url),
        None => ("file_data", part.required_text("file_data")?),
    };
    media::of_url(MediaKind::File, data)
        .or_else(|_| media::of_base64(MediaKind::File, "application/octet-stream", data))
        .map_err(|_| {
            Refusal::invalid("The file data is neither a URL, a data URL nor valid base64.")
                .param(part.path(name))
                .code("invalid_value")
        })
}

fn audio(part: &Member<'_>) -> Result<Media, Refusal> {
    let sound = part.required_child("input_audio")?;
    sound.required("format")?;
    let format = sound.one_of("format", &["wav", "mp3"])?.unwrap_or_default();
    media::of_base64(MediaKind::Sound, format, sound.required_text("data")?).map_err(|_| {
        Refusal::invalid("The audio data is not valid base64.")
            .param(sound.path("data"))
            .code("invalid_value")
    })
}

/// Refuses file ids, because no files are stored.
fn no_file_id(part: &Member<'_>) -> Result<(), Refusal> {
    match part.text("file_id")? {
        None => Ok(()),
        Some(id) => Err(Refusal::invalid(format!("No such File object: {id}"))
            .param(part.path("file_id"))
            .code("not_found")),
    }
}

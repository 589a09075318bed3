//! Reads a request and applies the vendor's checks.

use crate::google::{Field, Refusal, Spelling};
use serde_json::Value;

const BODY: &[&str] = &[
    "background",
    "generation_config",
    "input",
    "model",
    "response_format",
    "store",
    "stream",
];
/// The duration of every edit, whose request does not affect it. The simulator does not read the source.
const EDIT_SECONDS: u64 = 10;
const FORMAT: &[&str] = &["aspect_ratio", "delivery", "duration", "resolution", "type"];
const CONTENT: &[&str] = &["data", "mime_type", "text", "type", "uri"];
const TASKS: &[&str] = &[
    "text_to_video",
    "image_to_video",
    "reference_to_video",
    "edit",
    "extend",
    "upscale",
];

#[derive(Debug)]
pub(super) struct VideoSpec {
    pub(super) prompt: String,
    pub(super) seconds: u64,
    /// Whether the caller asked for a link to a file.
    pub(super) by_uri: bool,
}

pub(super) fn read(request: &Value) -> Result<VideoSpec, Refusal> {
    let body = Field::object(request, "", Spelling::Snake, BODY)?;
    if body.flag("stream")? == Some(true) || body.flag("background")? == Some(true) {
        let message = "stream=true and background=true are not supported for this model.";
        return Err(Refusal::invalid(message));
    }
    if body.flag("store")? != Some(false) {
        return Err(Refusal::invalid("The simulator stores no interactions."));
    }
    let mut seconds = 10;
    let mut by_uri = false;
    if let Some(format) = body.child("response_format", FORMAT)? {
        format.word("type", &["video"])?;
        format.word("resolution", &["360p", "720p", "1080p", "4k"])?;
        format.word("aspect_ratio", &["16:9", "9:16"])?;
        by_uri = format.word("delivery", &["inline", "uri"])? == Some("uri");
        if let Some(duration) = format.text("duration")? {
            let given = duration.strip_suffix('s').and_then(|it| it.parse().ok());
            let given = given.filter(|given| (3..=10).contains(given));
            let message = "response_format.duration must be between 3s and 10s";
            seconds = given.ok_or_else(|| Refusal::invalid(message))?;
        }
    }
    let mut task = None;
    if let Some(config) = body.child("generation_config", &["video_config"])?
        && let Some(video) = config.child("video_config", &["task"])?
    {
        task = video.word("task", TASKS)?;
    }
    let (prompt, media) = input(&body)?;
    let fits = match task {
        Some("text_to_video") => media.is_empty(),
        Some("image_to_video") => media == ["image"],
        Some("edit") => media == ["video"],
        _ => true,
    };
    if !fits {
        let message = "The input does not fit generation_config.video_config.task.";
        return Err(Refusal::invalid(message));
    }
    if media == ["video"] {
        seconds = EDIT_SECONDS;
    }
    Ok(VideoSpec {
        prompt,
        seconds,
        by_uri,
    })
}

/// Reads the text of the only step, and the types of its media.
fn input<'a>(body: &Field<'a>) -> Result<(String, Vec<&'a str>), Refusal> {
    let steps = body.children("input", &["content", "type"])?;
    let [step] = steps.as_slice() else {
        return Err(Refusal::invalid("'input' must hold one step."));
    };
    step.word("type", &["user_input"])?;
    let (mut prompt, mut media) = (String::new(), Vec::new());
    for content in step.children("content", CONTENT)? {
        match content.required_text("type")? {
            "text" => prompt.push_str(content.required_text("text")?),
            kind => {
                media.push(kind);
                if content.has("data") == content.has("uri") {
                    let message = format!("A {kind} needs either 'data' or 'uri'.");
                    return Err(Refusal::invalid(message));
                }
            }
        }
    }
    Ok((prompt, media))
}

//! Reads creation requests. `check` checks them and `wire` writes them.

use std::borrow::Cow;

use bytes::Bytes;

use crate::failure::Failure;
use crate::guard;
use crate::json::{Cursor, Members, Raw, Spelling};
use crate::video::check::{self, whole_number};
use crate::video::media_url;

/// The kind of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `POST /v1/videos/generations`
    Generation,
    /// `POST /v1/videos/edits`
    Edit,
    /// `POST /v1/videos/extensions`
    Extension,
}

/// The kind of input that a video is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Text,
    Image,
    Reference,
    Edit,
    Extension,
}

impl Mode {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "image",
            Self::Reference => "reference",
            Self::Edit => "edit",
            Self::Extension => "extension",
        }
    }
}

/// A request that was read. `check` compares it with the model's profile.
#[derive(Debug)]
pub struct Request {
    pub(super) model: String,
    pub(super) callback_url: Option<String>,
    pub(super) mode: Mode,
    /// In the client's spelling.
    pub(super) resolution: Option<String>,
    pub(super) aspect_ratio: Option<String>,
    pub(super) seconds: Option<i64>,
    pub(super) reference_images: usize,
    pub(super) reference_audios: usize,
    pub(super) body: Bytes,
}

/// Reads a creation request and refuses what no model supports.
pub fn read_request(body: &Bytes, operation: Operation) -> Result<Request, Failure> {
    let members = Members::read(body, Spelling::One)?;
    guard::routing(&members)?;
    guard::service_tier(&members)?;
    check::refuse_state(&members)?;
    refuse_size(&members)?;
    let model = members.string("model")?;
    let model = model.ok_or_else(|| missing("model"))?;
    guard::model_id(&model)?;
    let prompt = members.string("prompt")?;
    let has_prompt = prompt.is_some_and(|prompt| !prompt.trim().is_empty());
    members.string("user")?;
    let mut request = Request {
        model: model.into_owned(),
        callback_url: members.string("callback_url")?.map(Cow::into_owned),
        mode: Mode::Text,
        resolution: members.string("resolution")?.map(Cow::into_owned),
        aspect_ratio: members.string("aspect_ratio")?.map(Cow::into_owned),
        seconds: seconds(&members)?,
        reference_images: 0,
        reference_audios: 0,
        body: body.clone(),
    };
    match operation {
        Operation::Generation => request.read_generation(&members, has_prompt)?,
        Operation::Edit | Operation::Extension => {
            request.read_source(&members, has_prompt, operation)?;
        }
    }
    Ok(request)
}

impl Request {
    fn read_generation(&mut self, members: &Members<'_>, has_prompt: bool) -> Result<(), Failure> {
        if let Some(image) = members.object("image")? {
            media_url::check(image, "image.", "image/", &["file_id"])?;
            self.mode = Mode::Image;
        }
        if let Some(images) = members.array("reference_images")? {
            self.reference_images = each(images, |image| {
                media_url::check(image, "reference_images.", "image/", &["file_id"])
            })?;
        }
        if let Some(audios) = members.array("reference_audios")? {
            self.reference_audios = each(audios, |audio| {
                media_url::check(audio, "reference_audios.", "audio/", &["voice_id"])
            })?;
        }
        if self.reference_images > 0 {
            if self.mode == Mode::Image {
                let message = "`image` and `reference_images` exclude each other.";
                return Err(Failure::invalid(message).param("reference_images"));
            }
            self.mode = Mode::Reference;
        }
        if self.mode == Mode::Text && !has_prompt {
            return Err(missing("prompt"));
        }
        Ok(())
    }

    /// Reads the source video of an edit or an extension. The result has the source's resolution and
    /// aspect ratio, and an edit also has its duration, so these members are refused.
    fn read_source(
        &mut self,
        members: &Members<'_>,
        has_prompt: bool,
        operation: Operation,
    ) -> Result<(), Failure> {
        let (mode, inherited): (_, &[&'static str]) = match operation {
            Operation::Extension => (Mode::Extension, &["resolution", "aspect_ratio"]),
            _ => (
                Mode::Edit,
                &["resolution", "aspect_ratio", "duration", "seconds"],
            ),
        };
        self.mode = mode;
        if !has_prompt {
            return Err(missing("prompt"));
        }
        let video = members.object("video")?;
        let video = video.ok_or_else(|| missing("video"))?;
        media_url::check(video, "video.", "video/mp4", &["file_id"])?;
        for name in inherited {
            if members.get(name)?.is_some() {
                let message = format!("`{name}` follows the source video and cannot be set.");
                return Err(Failure::unsupported_parameter(*name, message));
            }
        }
        Ok(())
    }
}

/// Refuses `size`, an old name of `resolution` that upstreams still read. The hold and the price
/// follow `resolution` only.
fn refuse_size(members: &Members<'_>) -> Result<(), Failure> {
    if members.get("size")?.is_some() {
        let message = "`size` is not supported; use `resolution` and `aspect_ratio`.";
        return Err(Failure::unsupported_parameter("size", message));
    }
    Ok(())
}

/// `duration`, or `seconds` if it is absent: an integer, or a string that contains one.
fn seconds(members: &Members<'_>) -> Result<Option<i64>, Failure> {
    let read = |name: &'static str| -> Result<Option<i64>, Failure> {
        let Some(raw) = members.get(name)? else {
            return Ok(None);
        };
        let wrong = || {
            let message = format!("`{name}` must be a whole number of seconds.");
            Failure::invalid(message).param(name)
        };
        whole_number(raw).map(Some).ok_or_else(wrong)
    };
    let alias = read("seconds")?;
    Ok(read("duration")?.or(alias))
}

fn each(
    array: Raw<'_>,
    mut check: impl FnMut(Raw<'_>) -> Result<(), Failure>,
) -> Result<usize, Failure> {
    let mut count = 0;
    let mut cursor = Cursor::new(array.text());
    cursor.array(|cursor| {
        count += 1;
        check(cursor.value()?)
    })?;
    Ok(count)
}

fn missing(name: &'static str) -> Failure {
    Failure::invalid(format!("`{name}` is required.")).param(name)
}

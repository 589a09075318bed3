//! Reads content items: the text and the media that a video is made from.

use std::ops::Range;

use super::text_options::TextOptions;
use crate::failure::Failure;
use crate::json::{Cursor, Members, Raw, Spelling};

/// The schemes of media URLs: public URLs, and assets of the upstream.
const URL_SCHEMES: [&str; 3] = ["https://", "http://", "asset://"];

/// The items of a request, counted by their role.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Whether there is a text that is not blank.
    pub(super) has_text: bool,
    pub(super) text_options: TextOptions,
    pub(super) first_frames: usize,
    pub(super) last_frames: usize,
    /// The number of images without a role. A single image is the first frame.
    images_without_role: usize,
    pub(super) images: usize,
    pub(super) videos: usize,
    pub(super) audios: usize,
    pub(super) draft: Option<Draft>,
}

/// The draft to finish: our id for it, and the position of the id in the body.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) id: String,
    pub(super) span: Range<usize>,
}

impl Content {
    /// Reads the items and refuses those that cannot be combined (`docs/api/content-tasks.md`).
    pub(super) fn read(array: Raw<'_>) -> Result<Self, Failure> {
        let mut content = Self::default();
        let offset = array.span().start;
        let mut count = 0;
        Cursor::new(array.text()).array(|cursor| {
            count += 1;
            content.read_item(cursor.value()?.moved(offset))
        })?;
        if count == 0 {
            return Err(wrong("`content` must not be empty."));
        }
        content.assign_roles()?;
        content.check_mixture()?;
        Ok(content)
    }

    /// The number of reference media of all kinds.
    pub(super) fn references(&self) -> usize {
        self.images + self.videos + self.audios
    }

    fn frames(&self) -> usize {
        self.first_frames + self.last_frames
    }

    fn read_item(&mut self, raw: Raw<'_>) -> Result<(), Failure> {
        let item = Members::nested(raw, "content.", Spelling::One)?;
        let kind = item.string("type")?;
        match kind.as_deref() {
            Some("text") => {
                let text = item.string("text")?;
                let text = text.ok_or_else(|| missing("content.text"))?;
                self.has_text |= !text.trim().is_empty();
                self.text_options.read(&text);
                Ok(())
            }
            Some("image_url") => {
                check_url(
                    &item,
                    "image_url",
                    "content.image_url.",
                    Some("data:image/"),
                )?;
                self.read_image_role(&item)
            }
            Some("video_url") => {
                check_url(&item, "video_url", "content.video_url.", None)?;
                self.videos += 1;
                check_role(&item, "reference_video")
            }
            Some("audio_url") => {
                check_url(
                    &item,
                    "audio_url",
                    "content.audio_url.",
                    Some("data:audio/"),
                )?;
                self.audios += 1;
                check_role(&item, "reference_audio")
            }
            Some("draft_task") => self.read_draft(&item),
            Some(_) => {
                let message = "`content.type` must be one of text, image_url, video_url, audio_url, draft_task.";
                Err(Failure::invalid(message).param("content.type"))
            }
            None => Err(missing("content.type")),
        }
    }

    fn read_image_role(&mut self, item: &Members<'_>) -> Result<(), Failure> {
        let role = item.string("role")?;
        let count = match role.as_deref() {
            Some("first_frame") => &mut self.first_frames,
            Some("last_frame") => &mut self.last_frames,
            Some("reference_image") => &mut self.images,
            None => &mut self.images_without_role,
            Some(_) => {
                let message = "`content.role` of an image must be first_frame, last_frame or reference_image.";
                return Err(Failure::invalid(message).param("content.role"));
            }
        };
        *count += 1;
        Ok(())
    }

    fn read_draft(&mut self, item: &Members<'_>) -> Result<(), Failure> {
        let draft = item.object("draft_task")?;
        let draft = draft.ok_or_else(|| missing("content.draft_task"))?;
        let draft = Members::nested(draft, "content.draft_task.", Spelling::One)?;
        let (Some(id), Some(raw)) = (draft.string("id")?, draft.get("id")?) else {
            return Err(missing("content.draft_task.id"));
        };
        let draft = Draft {
            id: id.into_owned(),
            span: raw.span(),
        };
        match self.draft.replace(draft) {
            None => Ok(()),
            Some(_) => Err(wrong("`content` takes one draft task at most.")),
        }
    }

    /// A single image without a role is the first frame, because some clients send it in this way. If there are
    /// several images, each must have a role.
    fn assign_roles(&mut self) -> Result<(), Failure> {
        match (self.images_without_role, self.frames() + self.images) {
            (0, _) => Ok(()),
            (1, 0) => {
                self.images_without_role = 0;
                self.first_frames = 1;
                Ok(())
            }
            _ => {
                let message = "`content.role` is required where there are several images.";
                Err(Failure::invalid(message).param("content.role"))
            }
        }
    }

    fn check_mixture(&self) -> Result<(), Failure> {
        if self.first_frames > 1 || self.last_frames > 1 {
            return Err(wrong(
                "`content` takes one first and one last frame at most.",
            ));
        }
        if self.last_frames > self.first_frames {
            return Err(wrong("A last frame in `content` needs a first frame."));
        }
        if self.frames() > 0 && self.references() > 0 {
            let message = "Frames and reference media in `content` exclude each other.";
            return Err(wrong(message));
        }
        if self.draft.is_some() && self.frames() + self.references() > 0 {
            let message = "A draft task and media in `content` exclude each other.";
            return Err(wrong(message));
        }
        Ok(())
    }
}

/// Checks the URL of a medium. `inline` is the prefix of the data URIs that are allowed, if any.
fn check_url(
    item: &Members<'_>,
    name: &'static str,
    path: &'static str,
    inline: Option<&str>,
) -> Result<(), Failure> {
    let param = path.trim_end_matches('.');
    let medium = item.object(name)?.ok_or_else(|| missing(param))?;
    let medium = Members::nested(medium, path, Spelling::One)?;
    let url = medium.string("url")?.ok_or_else(|| missing(param))?;
    let begins = |start: &str| {
        let beginning = url.get(..start.len());
        url.len() > start.len() && beginning.is_some_and(|it| it.eq_ignore_ascii_case(start))
    };
    if URL_SCHEMES.iter().any(|scheme| begins(scheme)) || inline.is_some_and(begins) {
        return Ok(());
    }
    let or = inline.map_or("", |_| ", a data URI");
    let message = format!("`{path}url` must be an http(s) URL{or} or an asset.");
    Err(Failure::invalid(message).param(param))
}

/// Media with only one possible role need not name it.
fn check_role(item: &Members<'_>, only: &str) -> Result<(), Failure> {
    match item.string("role")?.as_deref() {
        None => Ok(()),
        Some(role) if role == only => Ok(()),
        Some(_) => {
            let message = format!("`content.role` must be {only} here.");
            Err(Failure::invalid(message).param("content.role"))
        }
    }
}

fn missing(name: &'static str) -> Failure {
    Failure::invalid(format!("`{name}` is required.")).param(name)
}

fn wrong(message: &'static str) -> Failure {
    Failure::invalid(message).param("content")
}

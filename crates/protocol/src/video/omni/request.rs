//! Reads creation requests, checks them against the model's profile, and writes them for an
//! upstream.

use std::borrow::Cow;

use bytes::Bytes;

use super::format::{self, Format, refuse_other_members};
use super::input::{self, Input};
use crate::byte_queue::ByteQueue;
use crate::failure::Failure;
use crate::guard;
use crate::json::{Cursor, Members, Raw, Spelling, write_string};
use crate::profile::{AllowedValues, Profile};
use crate::video::check;

/// Defaults of `docs/api/omni.md`.
const DEFAULT_SECONDS: i64 = 10;
const DEFAULT_RESOLUTION: &str = "720p";
const DEFAULT_RATIO: &str = "16:9";

const TASK: &str = "generation_config.video_config.task";
/// Members that refer to a stored object, or that delegate the work.
const REFERENCES: [&str; 7] = [
    "previous_interaction_id",
    "continuation_token",
    "agent",
    "agent_config",
    "environment",
    "webhook_config",
    "cached_content",
];
/// Members that have a meaning here. `store` and `background` ask for a task, which the client gets
/// in any case. The gateway sends both as `false` to the upstream.
const KNOWN: [&str; 10] = [
    "model",
    "input",
    "response_format",
    "response_modalities",
    "generation_config",
    "callback_url",
    "store",
    "background",
    "stream",
    "service_tier",
];

/// The kind of input that a video is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Text,
    Image,
    Edit,
}

impl Task {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text_to_video",
            Self::Image => "image_to_video",
            Self::Edit => "edit",
        }
    }
}

/// A request that was read, but not yet checked against the model's profile.
#[derive(Debug)]
pub struct Request {
    /// The public model id.
    pub(super) model: String,
    pub(super) callback_url: Option<String>,
    task: Task,
    input: Input,
    format: Format,
    body: Bytes,
}

/// Reads a creation request and refuses what no model supports.
pub fn read_request(body: &Bytes) -> Result<Request, Failure> {
    let members = Members::read(body, Spelling::One)?;
    let model = members.string("model")?;
    let model = model.ok_or_else(|| Failure::invalid("`model` is required.").param("model"))?;
    guard::model_id(&model)?;
    guard::routing(&members)?;
    guard::service_tier(&members)?;
    for name in REFERENCES {
        guard::refuse_reference(&members, name)?;
    }
    if members.boolean("stream")? == Some(true) {
        let message = "`stream: true` is not supported for videos; poll the task.";
        return Err(Failure::unsupported_parameter("stream", message));
    }
    members.boolean("store")?;
    members.boolean("background")?;
    refuse_other_members(&members, &KNOWN, "")?;
    if let Some(modalities) = members.array("response_modalities")? {
        only_video(modalities)?;
    }
    let asked = match members.object("generation_config")? {
        Some(config) => read_task(config)?,
        None => None,
    };
    let input = members.get("input")?;
    let input = input.ok_or_else(|| Failure::invalid("`input` is required.").param("input"))?;
    let input = input::read(input)?;
    Ok(Request {
        model: model.into_owned(),
        callback_url: members.string("callback_url")?.map(Cow::into_owned),
        task: task_of(&input, asked)?,
        input,
        format: match members.get("response_format")? {
            Some(raw) => format::read(raw)?,
            None => Format::default(),
        },
        body: body.clone(),
    })
}

impl Request {
    pub(super) fn check_profile(&self, profile: &Profile) -> Result<(), Failure> {
        check::word(TASK, self.task.as_str(), profile.modes.as_ref())?;
        let resolution = self.resolution();
        check::word(
            "response_format.resolution",
            resolution,
            profile.resolutions.as_ref(),
        )?;
        if let Some(ratio) = self.aspect_ratio() {
            check::word(
                "response_format.aspect_ratio",
                ratio,
                profile.ratios.as_ref(),
            )?;
        }
        match self.seconds() {
            Some(seconds) => {
                check::seconds("response_format.duration", seconds, resolution, profile)
            }
            None => Ok(()),
        }
    }

    /// The resolution that is requested, held and charged.
    pub(super) fn resolution(&self) -> &str {
        let asked = self.format.resolution.as_deref();
        asked.unwrap_or(DEFAULT_RESOLUTION)
    }

    /// The tokens of this resolution as a fraction of the tokens of the largest one. The family's prices have
    /// the same ratios.
    pub(super) fn share_of_tokens(&self) -> (u64, u64) {
        match self.resolution() {
            "360p" => (1, 10),
            "720p" => (1, 3),
            "1080p" => (1, 2),
            _ => (1, 1),
        }
    }

    /// The seconds that the hold is for: those of the request, or for an edit the longest possible
    /// source, because upstreams may ignore the duration that an edit asks for.
    pub(super) fn seconds_max(&self, profile: &Profile) -> u64 {
        let asked = self.seconds().and_then(|asked| u64::try_from(asked).ok());
        if self.task != Task::Edit {
            return asked.unwrap_or(0);
        }
        let longest = profile.durations.as_ref().and_then(AllowedValues::largest);
        let longest = longest.and_then(|longest| u64::try_from(longest).ok());
        let source = profile.source_seconds_max.or(longest).unwrap_or(u64::MAX);
        source.max(asked.unwrap_or(0))
    }

    /// The seconds that are charged at most, if the request determines them. An edit is charged as
    /// long as it became.
    pub(super) fn seconds_charged_max(&self) -> Option<i64> {
        self.seconds().filter(|_| self.task != Task::Edit)
    }

    /// The duration. An edit has the duration and the aspect ratio of its source, unless the client sets others.
    pub(super) fn seconds(&self) -> Option<i64> {
        let default = (self.task != Task::Edit).then_some(DEFAULT_SECONDS);
        self.format.seconds.or(default)
    }

    fn aspect_ratio(&self) -> Option<&str> {
        let default = (self.task != Task::Edit).then_some(DEFAULT_RATIO);
        self.format.aspect_ratio.as_deref().or(default)
    }

    /// The request for an upstream. The upstream stores nothing, and answers when the video is
    /// ready.
    pub(super) fn write_for(&self, upstream_model: &str) -> Vec<Bytes> {
        let mut out = ByteQueue::new();
        let mut head = b"{\"model\":".to_vec();
        write_string(&mut head, upstream_model);
        head.extend_from_slice(b",\"input\":");
        out.copy(&head);
        self.input.write(&self.body, &mut out);
        let mut tail = b",\"response_format\":{\"type\":\"video\",\"resolution\":".to_vec();
        write_string(&mut tail, self.resolution());
        if let Some(ratio) = self.aspect_ratio() {
            tail.extend_from_slice(b",\"aspect_ratio\":");
            write_string(&mut tail, ratio);
        }
        if let Some(seconds) = self.seconds() {
            tail.extend_from_slice(format!(",\"duration\":\"{seconds}s\"").as_bytes());
        }
        // Inline delivery fails above a few megabytes.
        tail.extend_from_slice(
            b",\"delivery\":\"uri\"},\"generation_config\":{\"video_config\":{\"task\":",
        );
        write_string(&mut tail, self.task.as_str());
        tail.extend_from_slice(b"}},\"store\":false,\"background\":false,\"stream\":false}");
        out.copy(&tail);
        out.into_pieces()
    }
}

/// The task that the configuration names. Refuses other members, because they have no meaning for a video.
fn read_task(config: Raw<'_>) -> Result<Option<Task>, Failure> {
    let config = Members::nested(config, "generation_config.", Spelling::One)?;
    refuse_other_members(&config, &["video_config"], "generation_config.")?;
    let Some(video) = config.object("video_config")? else {
        return Ok(None);
    };
    let path = "generation_config.video_config.";
    let video = Members::nested(video, path, Spelling::One)?;
    refuse_other_members(&video, &["task"], path)?;
    let Some(name) = video.string("task")? else {
        return Ok(None);
    };
    let task = [Task::Text, Task::Image, Task::Edit]
        .into_iter()
        .find(|task| task.as_str() == name);
    task.map(Some).ok_or_else(|| {
        let message = format!("`{TASK}` must be text_to_video, image_to_video or edit.");
        Failure::invalid(message).param(TASK)
    })
}

/// The task that the input implies. A task that the client named must be the same.
fn task_of(input: &Input, named: Option<Task>) -> Result<Task, Failure> {
    let wrong = |message: &'static str| Err(Failure::invalid(message).param("input"));
    let task = match (input.images, input.videos) {
        (0, 0) => Task::Text,
        (1, 0) => Task::Image,
        (0, 1) => Task::Edit,
        _ => return wrong("`input` takes at most one image or one video."),
    };
    match named {
        Some(Task::Text) if task != Task::Text => {
            return wrong("`text_to_video` takes a text alone.");
        }
        Some(Task::Image) if task != Task::Image => {
            return wrong("`image_to_video` needs exactly one image and no video.");
        }
        Some(Task::Edit) if task != Task::Edit => {
            return wrong("`edit` needs exactly one video and no image.");
        }
        _ => {}
    }
    if task != Task::Image && !input.has_text {
        return wrong("`input` needs a text.");
    }
    Ok(task)
}

fn only_video(modalities: Raw<'_>) -> Result<(), Failure> {
    let mut is_video = true;
    Cursor::new(modalities.text()).array(|cursor| {
        let word = cursor.value()?.string();
        let word = word.map(|word| word.decode_lossy());
        is_video &= word.is_some_and(|word| word.eq_ignore_ascii_case("video"));
        Ok::<(), Failure>(())
    })?;
    if is_video {
        return Ok(());
    }
    let message = "`response_modalities` can only be `video` with this model.";
    Err(Failure::invalid(message).param("response_modalities"))
}

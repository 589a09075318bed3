//! Reads creation requests, and writes them for an upstream.

use std::borrow::Cow;

use bytes::Bytes;

use super::content::Content;
use crate::byte_queue::ByteQueue;
use crate::failure::Failure;
use crate::guard;
use crate::json::{Cursor, Integer, Members, Raw, Spelling, write_string};
use crate::video::{CreationTarget, check};

/// Members for the gateway, which the upstream must not receive.
const CONSUMED: [&str; 6] = [
    "model",
    "callback_url",
    "service_tier",
    "store",
    "background",
    "deferred",
];
/// Limits of `docs/api/content-tasks.md`.
const SAFETY_IDENTIFIER_CHARS_MAX: usize = 64;
const EXPIRES_AFTER_S: std::ops::RangeInclusive<i64> = 3_600..=259_200;
const SEEDS: std::ops::RangeInclusive<i64> = -1..=2_147_483_647;
const FRAMES: std::ops::RangeInclusive<i64> = 29..=289;

/// A request that was read, but not yet checked against the model's profile.
#[derive(Debug)]
pub struct Request {
    pub(super) model: String,
    pub(super) callback_url: Option<String>,
    /// The time after which the upstream abandons the task, in seconds.
    pub(super) expires_after_s: Option<u64>,
    pub(super) content: Content,
    pub(super) options: Options,
    body: Bytes,
}

/// The members besides the content.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the protocol's own"
)]
pub(super) struct Options {
    pub(super) resolution: Option<String>,
    pub(super) ratio: Option<String>,
    /// Seconds; -1 lets the model choose the duration.
    pub(super) duration: Option<i64>,
    pub(super) frames: Option<u64>,
    pub(super) output_format: Option<String>,
    pub(super) task_type: Option<String>,
    pub(super) has_seed: bool,
    pub(super) generate_audio: bool,
    pub(super) camera_fixed: bool,
    pub(super) return_last_frame: bool,
    pub(super) draft: bool,
    /// The types of the tools.
    pub(super) tools: Vec<String>,
}

/// Reads a creation request and refuses what no model supports. A member that is `null` counts as
/// absent, because the official client sends every unset option as `null`.
pub fn read_request(body: &Bytes) -> Result<Request, Failure> {
    let members = Members::read(body, Spelling::One)?;
    guard::routing(&members)?;
    guard::service_tier(&members)?;
    check::refuse_state(&members)?;
    if members.get("priority")?.is_some() {
        let message = "`priority` is managed by the service; leave it out.";
        return Err(Failure::unsupported_parameter("priority", message));
    }
    let model = members.string("model")?;
    let model = model.ok_or_else(|| missing("model"))?;
    guard::model_id(&model)?;
    let content = members.array("content")?;
    let content = Content::read(content.ok_or_else(|| missing("content"))?)?;
    let expires_after = bounded(&members, "execution_expires_after", &EXPIRES_AFTER_S)?;
    let request = Request {
        model: model.into_owned(),
        callback_url: members.string("callback_url")?.map(Cow::into_owned),
        expires_after_s: expires_after.and_then(|seconds| u64::try_from(seconds).ok()),
        options: Options::read(&members)?,
        content,
        body: body.clone(),
    };
    request.check_prompt()?;
    Ok(request)
}

impl Options {
    fn read(members: &Members<'_>) -> Result<Self, Failure> {
        let text = |name| Ok::<_, Failure>(members.string(name)?.map(Cow::into_owned));
        let flag = |name| Ok::<_, Failure>(members.boolean(name)?.unwrap_or(false));
        members.boolean("watermark")?;
        if let Some(identifier) = members.string("safety_identifier")?
            && identifier.chars().count() > SAFETY_IDENTIFIER_CHARS_MAX
        {
            let message = "`safety_identifier` takes 64 characters at most.";
            return Err(Failure::invalid(message).param("safety_identifier"));
        }
        Ok(Self {
            resolution: text("resolution")?,
            ratio: text("ratio")?,
            duration: number(members, "duration")?,
            frames: frames(members)?,
            output_format: text("output_format")?,
            task_type: text("omni_reference_task_type")?,
            has_seed: bounded(members, "seed", &SEEDS)?.is_some(),
            generate_audio: flag("generate_audio")?,
            camera_fixed: flag("camera_fixed")?,
            return_last_frame: flag("return_last_frame")?,
            draft: flag("draft")?,
            tools: match members.array("tools")? {
                Some(tools) => tool_types(tools)?,
                None => Vec::new(),
            },
        })
    }
}

/// The request for an upstream, with the upstream's names of the model and of the draft. Members that are for
/// the gateway or `null` are left out. All other members are unchanged.
pub(super) fn write_request(
    request: &Request,
    to: &CreationTarget<'_>,
) -> Result<Vec<Bytes>, Failure> {
    let mut head = b"{\"model\":".to_vec();
    write_string(&mut head, to.model);
    let mut out = ByteQueue::new();
    out.copy(&head);
    let body = &request.body;
    let members = Members::read(body, Spelling::One)?;
    for member in members.iter() {
        if CONSUMED.contains(&&*member.name) || member.value.is_null() {
            continue;
        }
        let mut name = b",".to_vec();
        write_string(&mut name, &member.name);
        name.push(b':');
        out.copy(&name);
        let span = member.value.span();
        match (&request.content.draft, to.draft) {
            (Some(draft), Some(upstream_id)) if &*member.name == "content" => {
                out.share(body, span.start..draft.span.start);
                let mut id = Vec::new();
                write_string(&mut id, upstream_id);
                out.copy(&id);
                out.share(body, draft.span.end..span.end);
            }
            _ => out.share(body, span),
        }
    }
    out.copy(b"}");
    Ok(out.into_pieces())
}

fn number(members: &Members<'_>, name: &'static str) -> Result<Option<i64>, Failure> {
    let Some(raw) = members.get(name)? else {
        return Ok(None);
    };
    let wrong = || Failure::invalid(format!("`{name}` must be an integer.")).param(name);
    let number = match raw.integer().ok_or_else(wrong)? {
        // Only -1 has a meaning among negative numbers. `i64::MIN` stands for all others.
        Integer::Negative if raw.text() == "-1" => -1,
        Integer::Negative => i64::MIN,
        Integer::Value(value) => i64::try_from(value).unwrap_or(i64::MAX),
        Integer::Huge => i64::MAX,
    };
    Ok(Some(number))
}

fn bounded(
    members: &Members<'_>,
    name: &'static str,
    bounds: &std::ops::RangeInclusive<i64>,
) -> Result<Option<i64>, Failure> {
    let number = number(members, name)?;
    if number.is_some_and(|number| !bounds.contains(&number)) {
        let (least, most) = (bounds.start(), bounds.end());
        let message = format!("`{name}` must be between {least} and {most}.");
        return Err(Failure::invalid(message).param(name));
    }
    Ok(number)
}

fn frames(members: &Members<'_>) -> Result<Option<u64>, Failure> {
    let frames = bounded(members, "frames", &FRAMES)?;
    if frames.is_some_and(|frames| (frames - 25) % 4 != 0) {
        let message = "`frames` must have the form 25 + 4n.";
        return Err(Failure::invalid(message).param("frames"));
    }
    Ok(frames.and_then(|frames| u64::try_from(frames).ok()))
}

fn tool_types(array: Raw<'_>) -> Result<Vec<String>, Failure> {
    let mut types = Vec::new();
    Cursor::new(array.text()).array(|cursor| {
        let tool = Members::nested(cursor.value()?, "tools.", Spelling::One)?;
        let kind = tool.string("type")?;
        types.push(kind.ok_or_else(|| missing("tools.type"))?.into_owned());
        Ok::<(), Failure>(())
    })?;
    Ok(types)
}

pub(super) fn missing(name: &'static str) -> Failure {
    Failure::invalid(format!("`{name}` is required.")).param(name)
}

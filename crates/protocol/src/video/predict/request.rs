//! Reads creation requests, checks them against the model's profile, and writes them for an
//! upstream.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use super::image::Image;
use crate::byte_queue::ByteQueue;
use crate::failure::Failure;
use crate::guard;
use crate::json::members::camel;
use crate::json::{Cursor, Integer, Members, Raw, Spelling, write_string};
use crate::profile::Profile;
use crate::video::check;

/// Defaults of `docs/api/predict.md`.
const DEFAULT_SECONDS: i64 = 8;
const DEFAULT_RESOLUTION: &str = "720p";
const DEFAULT_RATIO: &str = "16:9";

/// Inputs that upstreams support and the gateway does not expose.
const NOT_EXPOSED: [(&str, &str, &str); 3] = [
    ("video", "instances[0].video", "parameters.video"),
    (
        "last_frame",
        "instances[0].lastFrame",
        "parameters.lastFrame",
    ),
    (
        "reference_images",
        "instances[0].referenceImages",
        "parameters.referenceImages",
    ),
];
/// Members that would make the upstream store or send something.
const STORAGE: [(&str, &str); 2] = [
    ("storage_uri", "parameters.storageUri"),
    ("pubsub_topic", "parameters.pubsubTopic"),
];
/// Members that are for the gateway, or that it writes itself.
const TOP_CONSUMED: [&str; 4] = ["model", "instances", "parameters", "callbackUrl"];
const CONSUMED: [&str; 5] = [
    "durationSeconds",
    "resolution",
    "aspectRatio",
    "numberOfVideos",
    "sampleCount",
];

/// A member that is passed on unchanged: its name in the upstream's spelling, and its position.
type UnchangedMember = (String, Range<usize>);

/// A request that was read, but not yet checked against the model's profile.
#[derive(Debug)]
pub struct Request {
    /// The public model id.
    pub(super) model: String,
    pub(super) callback_url: Option<String>,
    image: Option<Image>,
    seconds: i64,
    resolution: String,
    aspect_ratio: String,
    top: Vec<UnchangedMember>,
    instance: Vec<UnchangedMember>,
    parameters: Vec<UnchangedMember>,
    body: Bytes,
}

/// Reads a creation request, whose path names the model, and refuses what no model supports.
pub fn read_request(body: &Bytes, model: &str) -> Result<Request, Failure> {
    guard::model_id(model)?;
    let members = Members::read(body, Spelling::SnakeOrCamel)?;
    guard::routing(&members)?;
    guard::service_tier(&members)?;
    check::refuse_member(&members, "webhook_config", "webhookConfig")?;
    let named = members.string("model")?;
    if named.is_some_and(|named| named.strip_prefix("models/").unwrap_or(&named) != model) {
        let message = "`model` in the body is not the model in the path.";
        return Err(Failure::invalid(message).param("model"));
    }
    let mut request = Request {
        model: model.to_owned(),
        callback_url: members.string("callback_url")?.map(Cow::into_owned),
        image: None,
        seconds: DEFAULT_SECONDS,
        resolution: DEFAULT_RESOLUTION.to_owned(),
        aspect_ratio: DEFAULT_RATIO.to_owned(),
        top: unchanged_members(&members, &TOP_CONSUMED),
        instance: Vec::new(),
        parameters: Vec::new(),
        body: body.clone(),
    };
    request.read_instance(only_instance(&members)?)?;
    if let Some(parameters) = members.object("parameters")? {
        let path = "parameters.";
        request.read_parameters(&Members::nested(parameters, path, Spelling::SnakeOrCamel)?)?;
    }
    Ok(request)
}

impl Request {
    fn read_instance(&mut self, raw: Raw<'_>) -> Result<(), Failure> {
        let members = Members::nested(raw, "instances[0].", Spelling::SnakeOrCamel)?;
        for (name, param, _) in NOT_EXPOSED {
            not_exposed(&members, name, param)?;
        }
        if let Some(image) = members.object("image")? {
            self.image = Some(Image::read(image)?);
        }
        let prompt = members.string("prompt")?;
        if self.image.is_none() && prompt.is_none_or(|prompt| prompt.trim().is_empty()) {
            let message = "`instances[0].prompt` is required without an image.";
            return Err(Failure::invalid(message).param("instances[0].prompt"));
        }
        self.instance = unchanged_members(&members, &["image"]);
        Ok(())
    }

    fn read_parameters(&mut self, members: &Members<'_>) -> Result<(), Failure> {
        for (name, _, param) in NOT_EXPOSED {
            not_exposed(members, name, param)?;
        }
        for (name, param) in STORAGE {
            check::refuse_member(members, name, param)?;
        }
        for (name, param) in [
            ("number_of_videos", "parameters.numberOfVideos"),
            ("sample_count", "parameters.sampleCount"),
        ] {
            if !matches!(members.integer(name)?, None | Some(Integer::Value(1))) {
                let message = format!("`{param}` must be 1: one video is made.");
                return Err(Failure::invalid(message).param(param));
            }
        }
        for name in ["person_generation", "negative_prompt"] {
            members.string(name)?;
        }
        members.boolean("enhance_prompt")?;
        members.integer("seed")?;
        if let Some(seconds) =
            check::whole(members, "duration_seconds", "parameters.durationSeconds")?
        {
            self.seconds = seconds;
        }
        if let Some(resolution) = members.string("resolution")? {
            self.resolution = resolution.into_owned();
        }
        if let Some(ratio) = members.string("aspect_ratio")? {
            self.aspect_ratio = ratio.into_owned();
        }
        self.parameters = unchanged_members(members, &CONSUMED);
        Ok(())
    }

    pub(super) fn check_profile(&self, profile: &Profile) -> Result<(), Failure> {
        let mode = if self.image.is_some() {
            "image"
        } else {
            "text"
        };
        if let Some(modes) = &profile.modes
            && !modes.has_word(mode)
        {
            let message = format!("This model makes no videos in the mode `{mode}`.");
            return Err(Failure::model_not_supported(message));
        }
        check::word(
            "parameters.resolution",
            &self.resolution,
            profile.resolutions.as_ref(),
        )?;
        check::word(
            "parameters.aspectRatio",
            &self.aspect_ratio,
            profile.ratios.as_ref(),
        )?;
        check::seconds(
            "parameters.durationSeconds",
            self.seconds,
            &self.resolution,
            profile,
        )
    }

    /// The seconds that are held and charged.
    pub(super) fn seconds(&self) -> u64 {
        u64::try_from(self.seconds).unwrap_or(0)
    }

    /// The resolution that is held and charged.
    pub(super) fn resolution(&self) -> &str {
        &self.resolution
    }

    /// The request for an upstream. It sets everything that affects the bill, so that no default of the
    /// upstream decides the bill. Members for the gateway are left out. All other members are unchanged.
    pub(super) fn write_body(&self) -> Vec<Bytes> {
        let mut out = ByteQueue::new();
        out.copy(b"{\"instances\":[{");
        if let Some(image) = &self.image {
            out.copy(b"\"image\":");
            image.write(&self.body, &mut out);
        }
        self.carry(&self.instance, self.image.is_none(), &mut out);
        let mut parameters = b"}],\"parameters\":{\"sampleCount\":1,\"durationSeconds\":".to_vec();
        parameters.extend_from_slice(self.seconds.to_string().as_bytes());
        parameters.extend_from_slice(b",\"resolution\":");
        write_string(&mut parameters, &self.resolution);
        parameters.extend_from_slice(b",\"aspectRatio\":");
        write_string(&mut parameters, &self.aspect_ratio);
        out.copy(&parameters);
        self.carry(&self.parameters, false, &mut out);
        out.copy(b"}");
        self.carry(&self.top, false, &mut out);
        out.copy(b"}");
        out.into_pieces()
    }

    fn carry(&self, members: &[UnchangedMember], is_first: bool, out: &mut ByteQueue) {
        for (number, (name, span)) in members.iter().enumerate() {
            let mut head = Vec::new();
            if number > 0 || !is_first {
                head.push(b',');
            }
            write_string(&mut head, name);
            head.push(b':');
            out.copy(&head);
            out.share(&self.body, span.clone());
        }
    }
}

fn only_instance<'a>(members: &Members<'a>) -> Result<Raw<'a>, Failure> {
    let wrong = || Failure::invalid("`instances` must have exactly one item.").param("instances");
    let list = members.array("instances")?.ok_or_else(wrong)?;
    let mut items = Vec::new();
    let mut cursor = Cursor::new(list.text());
    cursor.array(|cursor| {
        let item = cursor.value()?;
        if items.len() < 2 {
            items.push(item.moved(list.span().start));
        }
        Ok::<(), Failure>(())
    })?;
    match items.as_slice() {
        [item] => Ok(*item),
        _ => Err(wrong()),
    }
}

fn not_exposed(members: &Members<'_>, name: &str, param: &'static str) -> Result<(), Failure> {
    if members.get(name)?.is_some() {
        let message = format!("`{param}` is not supported.");
        return Err(Failure::unsupported_parameter(param, message));
    }
    Ok(())
}

/// The members that are passed on unchanged. A member that is `null` counts as absent.
fn unchanged_members(members: &Members<'_>, consumed: &[&str]) -> Vec<UnchangedMember> {
    let named = members.iter().filter(|member| !member.value.is_null());
    let named = named.map(|member| (camel(&member.name).into_owned(), member.value.span()));
    named
        .filter(|(name, _)| !consumed.contains(&name.as_str()))
        .collect()
}

//! Checks a request against the model's profile.

use super::request::{Request, missing};
use super::text_options::TextResolution;
use crate::failure::Failure;
use crate::profile::{AllowedValues, Profile};

/// The resolution of drafts (`docs/api/content-tasks.md`).
const DRAFT_RESOLUTION: &str = "480p";
const ADAPTIVE: &str = "adaptive";
/// Lets the model choose the duration.
pub(super) const AUTO: i64 = -1;

/// The kind of input that a video is made from (`docs/api/content-tasks.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Text,
    First,
    FirstLast,
    Reference,
    Edit,
    Extend,
    /// The final version of a draft.
    Draft,
}

impl Mode {
    /// The name of the mode in profiles.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::First => "first",
            Self::FirstLast => "first+last",
            Self::Reference => "reference",
            Self::Edit => "edit",
            Self::Extend => "extend",
            Self::Draft => "draft",
        }
    }

    const fn has_references(self) -> bool {
        matches!(self, Self::Reference | Self::Edit | Self::Extend)
    }
}

impl Request {
    pub(super) fn mode(&self) -> Mode {
        match self.options.task_type.as_deref() {
            Some("edit") => return Mode::Edit,
            Some("extend") => return Mode::Extend,
            Some("reference") => return Mode::Reference,
            _ => {}
        }
        let content = &self.content;
        if content.draft.is_some() {
            Mode::Draft
        } else if content.references() > 0 {
            Mode::Reference
        } else if content.last_frames > 0 {
            Mode::FirstLast
        } else if content.first_frames > 0 {
            Mode::First
        } else {
            Mode::Text
        }
    }

    /// Refuses a blank text if there is no other content.
    pub(super) fn check_prompt(&self) -> Result<(), Failure> {
        let content = &self.content;
        let is_bare = content.draft.is_none() && content.references() == 0;
        if is_bare && content.first_frames == 0 && !content.has_text {
            return Err(missing("content.text"));
        }
        Ok(())
    }

    /// Refuses what the model does not support. The caller has added the values of the base to
    /// `profile`.
    pub(super) fn check_profile(&self, profile: &Profile) -> Result<(), Failure> {
        self.check_task_type(profile)?;
        let mode = self.mode();
        if !allows(profile.modes.as_ref(), mode.as_str()) {
            let message = format!(
                "This model makes no videos in the mode `{}`.",
                mode.as_str()
            );
            return Err(Failure::model_not_supported(message));
        }
        self.check_references(mode, profile)?;
        self.check_looks(mode, profile)?;
        self.check_length(mode, profile)?;
        self.check_draft(profile)?;
        self.check_abilities(mode, profile)
    }

    fn check_task_type(&self, profile: &Profile) -> Result<(), Failure> {
        const NAME: &str = "omni_reference_task_type";
        let Some(task_type) = self.options.task_type.as_deref() else {
            return Ok(());
        };
        if !["auto", "reference", "edit", "extend"].contains(&task_type) {
            let message = format!("`{NAME}` must be one of auto, reference, edit, extend.");
            return Err(Failure::invalid(message).param(NAME));
        }
        if !allows(profile.task_types.as_ref(), task_type) {
            return Err(unsupported(NAME));
        }
        if self.mode().has_references() && self.content.references() == 0 {
            let message = format!("`{NAME}: {task_type}` needs reference media in `content`.");
            return Err(Failure::invalid(message).param("content"));
        }
        Ok(())
    }

    fn check_references(&self, mode: Mode, profile: &Profile) -> Result<(), Failure> {
        let content = &self.content;
        let wrong = |message: String| Err(Failure::invalid(message).param("content"));
        if matches!(mode, Mode::Edit | Mode::Extend) && content.videos == 0 {
            let mode = mode.as_str();
            return wrong(format!("The mode `{mode}` needs a reference video."));
        }
        for (kind, count) in [
            ("image", content.images),
            ("video", content.videos),
            ("audio", content.audios),
            ("total", content.references()),
        ] {
            let most = profile.references_max.as_ref();
            let Some(most) = most.and_then(|most| most.of(kind)) else {
                continue;
            };
            if count > usize::try_from(most).unwrap_or(usize::MAX) {
                let what = if kind == "total" {
                    "reference items".to_owned()
                } else {
                    format!("reference {kind} items")
                };
                return wrong(format!(
                    "`content` takes at most {most} {what} on this model."
                ));
            }
        }
        let is_audio_alone = content.audios > 0 && content.images + content.videos == 0;
        if is_audio_alone && profile.audio_only == Some(false) {
            return wrong("Reference audio needs a reference image or video beside it.".to_owned());
        }
        Ok(())
    }

    fn check_looks(&self, mode: Mode, profile: &Profile) -> Result<(), Failure> {
        let resolutions = profile.reference_resolutions.as_ref();
        let resolutions = resolutions.filter(|_| mode.has_references());
        let resolutions = resolutions.or(profile.resolutions.as_ref());
        let options = &self.options;
        one_of("resolution", options.resolution.as_deref(), resolutions)?;
        let ratio = options.ratio.as_deref();
        one_of("ratio", ratio, profile.ratios.as_ref())?;
        one_of(
            "output_format",
            options.output_format.as_deref(),
            profile.output_formats.as_ref(),
        )?;
        // Edits and extensions must set `adaptive` explicitly. In other modes it is the default.
        let is_explicit = matches!(mode, Mode::Edit | Mode::Extend);
        let is_bound = profile.adaptive_modes.as_ref();
        let is_bound = is_bound.is_some_and(|modes| modes.has_word(mode.as_str()));
        let is_adaptive = ratio == Some(ADAPTIVE) || (ratio.is_none() && !is_explicit);
        if (is_explicit || is_bound) && !is_adaptive {
            let mode = mode.as_str();
            let message = format!("`ratio` must be adaptive in the mode `{mode}`.");
            return Err(Failure::invalid(message).param("ratio"));
        }
        Ok(())
    }

    fn check_length(&self, mode: Mode, profile: &Profile) -> Result<(), Failure> {
        if self.options.frames.is_some() {
            // The number of frames replaces the duration.
            return match profile.frames {
                Some(false) => Err(unsupported("frames")),
                _ => Ok(()),
            };
        }
        let Some(duration) = self.options.duration else {
            return Ok(());
        };
        let wrong = |message: String| Err(Failure::invalid(message).param("duration"));
        // An edit has the duration of its source.
        if mode == Mode::Edit && profile.auto_duration == Some(true) && duration != AUTO {
            return wrong("`duration` must be -1 in the mode `edit`.".to_owned());
        }
        let Some(allowed) = &profile.durations else {
            return Ok(());
        };
        let auto = profile.auto_duration == Some(true);
        if allowed.has_number(duration) || (duration == AUTO && auto) {
            return Ok(());
        }
        let or = if auto { " or -1" } else { "" };
        wrong(format!(
            "`duration` must be {allowed} seconds{or} on this model."
        ))
    }

    fn check_draft(&self, profile: &Profile) -> Result<(), Failure> {
        let options = &self.options;
        if !options.draft {
            return Ok(());
        }
        if !allows(profile.modes.as_ref(), Mode::Draft.as_str()) {
            return Err(unsupported("draft"));
        }
        if self.content.draft.is_some() {
            let message = "What is promoted from a draft cannot be a draft.";
            return Err(Failure::invalid(message).param("draft"));
        }
        let resolution = options.resolution.as_deref();
        if resolution.is_some_and(|resolution| resolution != DRAFT_RESOLUTION) {
            let message = format!("A draft's `resolution` must be {DRAFT_RESOLUTION}.");
            return Err(Failure::invalid(message).param("resolution"));
        }
        // A text keeps its options when its draft is finished.
        let in_text = self.content.text_options.resolution;
        let is_text_right = [
            TextResolution::Absent,
            TextResolution::One(DRAFT_RESOLUTION),
        ]
        .contains(&in_text);
        if !is_text_right {
            let message = format!(
                "The text of a draft may only name {DRAFT_RESOLUTION}: `--rs {DRAFT_RESOLUTION}`."
            );
            return Err(Failure::invalid(message).param("content.text"));
        }
        if options.return_last_frame {
            let message = "A draft has no last frame to return.";
            return Err(Failure::invalid(message).param("return_last_frame"));
        }
        Ok(())
    }

    /// Checks options that some models do not have. An option that is switched off is always
    /// allowed.
    fn check_abilities(&self, mode: Mode, profile: &Profile) -> Result<(), Failure> {
        let options = &self.options;
        for (name, is_asked, is_able) in [
            ("seed", options.has_seed, profile.seed),
            ("generate_audio", options.generate_audio, profile.audio),
            ("camera_fixed", options.camera_fixed, profile.camera_fixed),
        ] {
            if is_asked && is_able == Some(false) {
                return Err(unsupported(name));
            }
        }
        if options.camera_fixed && mode.has_references() {
            let message = "`camera_fixed` does not go with reference media.";
            return Err(Failure::unsupported_parameter("camera_fixed", message));
        }
        for tool in &options.tools {
            if !allows(profile.built_in_tools.as_ref(), tool) {
                return Err(unsupported("tools"));
            }
            if mode != Mode::Text {
                let message = "`tools` go with text alone.";
                return Err(Failure::unsupported_parameter("tools", message));
            }
        }
        Ok(())
    }

    /// The resolutions that the video may have; empty if none is certain. There are several if the
    /// text names another one than the member.
    pub(super) fn resolutions<'a>(&'a self, profile: &'a Profile) -> Vec<&'a str> {
        if self.options.draft {
            return vec![DRAFT_RESOLUTION];
        }
        let default = profile.default_resolution.as_deref();
        let member = self.options.resolution.as_deref().or(default);
        let named = match (self.content.text_options.resolution, member) {
            (TextResolution::Any, _) | (_, None) => return Vec::new(),
            (TextResolution::Absent, Some(member)) => return vec![member],
            (TextResolution::One(named), Some(member)) => [Some(named), Some(member), default],
        };
        let mut named: Vec<&str> = named.into_iter().flatten().collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    /// The resolution of the video, if it is certain.
    pub(super) fn resolution<'a>(&'a self, profile: &'a Profile) -> Option<&'a str> {
        match *self.resolutions(profile) {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// Whether a word is allowed. If the allowed words are not known, the upstream decides.
fn allows(allowed: Option<&AllowedValues>, word: &str) -> bool {
    allowed.is_none_or(|allowed| allowed.has_word(word))
}

fn one_of(
    name: &'static str,
    value: Option<&str>,
    allowed: Option<&AllowedValues>,
) -> Result<(), Failure> {
    match (value, allowed) {
        (Some(value), Some(allowed)) if !allowed.has_word(value) => {
            let message = format!("`{name}` must be one of {allowed} on this model.");
            Err(Failure::invalid(message).param(name))
        }
        _ => Ok(()),
    }
}

fn unsupported(name: &'static str) -> Failure {
    let message = format!("This model does not support `{name}`.");
    Failure::unsupported_parameter(name, message)
}

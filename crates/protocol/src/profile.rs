//! Profiles: the capabilities of models, as data.
//!
//! A profile belongs to a model in the configuration. No code depends on the name of a model.
//! `base` names a built-in profile whose values the entry may override.

mod built_in;

use serde::{Deserialize, Serialize};

use crate::canon::Effort;

/// What a model produces. This determines the endpoints that serve the model and the unit of its
/// price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Text, including tools and reasoning.
    Text,
    /// Vectors.
    Embedding,
    /// Pictures.
    Image,
    /// Video tasks.
    Video,
    /// Speech and transcription.
    Audio,
}

impl Kind {
    /// The name used in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Embedding => "embedding",
            Self::Image => "image",
            Self::Video => "video",
            Self::Audio => "audio",
        }
    }
}

/// A built-in profile of image and video capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BuiltInProfile {
    /// Content-task, series 2.5.
    #[serde(rename = "content-2.5")]
    Content25,
    /// Content-task, series 2.0.
    #[serde(rename = "content-2.0")]
    Content20,
    /// Content-task, series 1.5 Pro.
    #[serde(rename = "content-1.5-pro")]
    Content15Pro,
    /// Content-task, series 1.0.
    #[serde(rename = "content-1.0")]
    Content10,
    /// Long-running predict.
    #[serde(rename = "predict-3.1")]
    Predict31,
    /// Long-running predict, fast.
    #[serde(rename = "predict-3.1-fast")]
    Predict31Fast,
    /// Long-running predict, lite.
    #[serde(rename = "predict-3.1-lite")]
    Predict31Lite,
    /// Omni interactions.
    #[serde(rename = "omni-1.1")]
    Omni11,
    /// Video-A.
    #[serde(rename = "video-a")]
    VideoA,
    /// GPT-image.
    #[serde(rename = "gpt-image")]
    GptImage,
    /// GPT-image with the qualities `xhigh` and `max`.
    #[serde(rename = "gpt-image-max")]
    GptImageMax,
    /// Images of the video-A family.
    #[serde(rename = "video-a-image")]
    VideoAImage,
    /// Images with a top-level `image`.
    #[serde(rename = "content-image")]
    ContentImage,
    /// Images through Generate Content.
    #[serde(rename = "native-image")]
    NativeImage,
}

/// How thinking is configured in requests to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    /// The model decides. An effort may be set.
    Adaptive,
    /// A number of tokens.
    Budget,
    /// A named level.
    Level,
    /// The model has no thinking to configure.
    None,
}

/// The values that a member may have: a list of them, or bounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AllowedValues {
    /// Exactly these words.
    Words(Vec<String>),
    /// Exactly these numbers.
    Numbers(Vec<i64>),
    /// All numbers between two bounds, inclusive.
    Bounds {
        /// The smallest value.
        min: i64,
        /// The largest value.
        max: i64,
    },
    /// Up to this number.
    Max(i64),
}

impl AllowedValues {
    /// Whether a word is allowed. Always `false` for numbers and bounds.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        matches!(self, Self::Words(words) if words.iter().any(|known| known == word))
    }

    /// Whether a number is allowed. Always `false` for words.
    pub(crate) fn has_number(&self, number: i64) -> bool {
        match self {
            Self::Words(_) => false,
            Self::Numbers(numbers) => numbers.contains(&number),
            Self::Bounds { min, max } => (*min..=*max).contains(&number),
            Self::Max(max) => number <= *max,
        }
    }

    /// The largest allowed number.
    pub fn largest(&self) -> Option<i64> {
        match self {
            Self::Words(_) => None,
            Self::Numbers(numbers) => numbers.iter().max().copied(),
            Self::Bounds { max, .. } | Self::Max(max) => Some(*max),
        }
    }
}

/// Writes the allowed values for error messages.
impl std::fmt::Display for AllowedValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Words(words) => f.write_str(&words.join(", ")),
            Self::Numbers(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
                f.write_str(&numbers.join(", "))
            }
            Self::Bounds { min, max } => write!(f, "{min} to {max}"),
            Self::Max(max) => write!(f, "at most {max}"),
        }
    }
}

/// The name of the output limit in chat requests. Servers ignore a name that they do not know, and
/// then nothing limits the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputLimit {
    /// The newer name, which reasoning models of `OpenAI` require.
    #[default]
    MaxCompletionTokens,
    /// The older name, which every other server accepts.
    MaxTokens,
}

impl OutputLimit {
    /// The member's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxTokens => "max_tokens",
        }
    }
}

/// The capabilities of one model. Absent values come from `base`. Without a base they are unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// The built-in profile that provides absent values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<BuiltInProfile>,
    /// The context window, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// The maximum output, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// The name of the output limit in chat requests to its upstream. If absent, the channel
    /// decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_limit: Option<OutputLimit>,
    /// Whether it accepts images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vision: Option<bool>,
    /// Whether its upstream fetches image URLs itself. Absent means the default of its dialect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_urls: Option<bool>,
    /// Whether it can call functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Whether it can reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// How thinking is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// The efforts or levels that it accepts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efforts: Option<Vec<Effort>>,
    /// Whether it refuses sampling parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_sampling: Option<bool>,
    /// Whether it generates images. Such a model is served only through Generate Content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_output: Option<bool>,
    /// The maximum number of tokens of one image, if images are billed by tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_tokens_max: Option<u64>,
    /// Lengths of embedding vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<AllowedValues>,
    /// Image qualities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qualities: Option<AllowedValues>,
    /// Encodings of images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_formats: Option<AllowedValues>,
    /// Backgrounds of images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backgrounds: Option<AllowedValues>,
    /// Whether images can be streamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_stream: Option<bool>,
    /// Image or video resolutions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolutions: Option<AllowedValues>,
    /// Video durations in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durations: Option<AllowedValues>,
    /// Video durations in seconds for single resolutions, where they differ from `durations`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution_durations: Option<std::collections::BTreeMap<String, AllowedValues>>,
    /// Durations in seconds by which a video can be extended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_durations: Option<AllowedValues>,
    /// The maximum number of tokens of a second of video, if videos are billed by tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_tokens_per_second: Option<u64>,
    /// The maximum duration of a source video, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_seconds_max: Option<u64>,
    /// Resolutions of videos made from references, if they differ from `resolutions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_resolutions: Option<AllowedValues>,
    /// Aspect ratios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratios: Option<AllowedValues>,
    /// Modes of video creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<AllowedValues>,
    /// The resolution of a video if the request sets none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_resolution: Option<String>,
    /// Whether the model can choose the duration of a video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_duration: Option<bool>,
    /// Whether the duration of a video can be set in frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<bool>,
    /// Modes of video creation in which the aspect ratio is that of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_modes: Option<AllowedValues>,
    /// Tasks on reference media that can be requested by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_types: Option<AllowedValues>,
    /// Tools that the upstream can use to create a video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_in_tools: Option<AllowedValues>,
    /// Whether the model can generate sound for a video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<bool>,
    /// Whether reference audio is allowed without other references.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_only: Option<bool>,
    /// Whether the camera can be fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub camera_fixed: Option<bool>,
    /// Whether the model accepts a seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<bool>,
    /// The maximum number of reference media, for all kinds or for each kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub references_max: Option<References>,
}

impl Profile {
    /// The profile with its absent values taken from `base`.
    #[must_use]
    pub fn over_base(self) -> Self {
        let Some(base) = self.base else {
            return self;
        };
        let below = base.profile();
        Self {
            qualities: self.qualities.or(below.qualities),
            output_formats: self.output_formats.or(below.output_formats),
            backgrounds: self.backgrounds.or(below.backgrounds),
            resolutions: self.resolutions.or(below.resolutions),
            ratios: self.ratios.or(below.ratios),
            reference_resolutions: self.reference_resolutions.or(below.reference_resolutions),
            durations: self.durations.or(below.durations),
            resolution_durations: self.resolution_durations.or(below.resolution_durations),
            extension_durations: self.extension_durations.or(below.extension_durations),
            video_tokens_per_second: self
                .video_tokens_per_second
                .or(below.video_tokens_per_second),
            source_seconds_max: self.source_seconds_max.or(below.source_seconds_max),
            modes: self.modes.or(below.modes),
            default_resolution: self.default_resolution.or(below.default_resolution),
            auto_duration: self.auto_duration.or(below.auto_duration),
            frames: self.frames.or(below.frames),
            adaptive_modes: self.adaptive_modes.or(below.adaptive_modes),
            task_types: self.task_types.or(below.task_types),
            built_in_tools: self.built_in_tools.or(below.built_in_tools),
            audio: self.audio.or(below.audio),
            audio_only: self.audio_only.or(below.audio_only),
            camera_fixed: self.camera_fixed.or(below.camera_fixed),
            seed: self.seed.or(below.seed),
            references_max: self.references_max.or(below.references_max),
            image_stream: self.image_stream.or(below.image_stream),
            image_output: self.image_output.or(below.image_output),
            ..self
        }
    }

    /// The accepted effort nearest to `asked`: the next lower one, or the next higher one if none
    /// is lower. `usual` applies if the model's efforts are not known.
    pub(crate) fn nearest_effort(&self, asked: Effort, usual: &[Effort]) -> Effort {
        let known = self.efforts.as_deref().unwrap_or(usual);
        let lower = known.iter().filter(|known| **known <= asked).max();
        let higher = known.iter().filter(|known| **known > asked).min();
        lower.or(higher).copied().unwrap_or(asked)
    }
}

/// The maximum number of reference media.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum References {
    /// One limit for all kinds.
    All(u32),
    /// A limit for each kind of medium.
    ByKind(std::collections::BTreeMap<String, u32>),
}

impl References {
    /// The limit for this kind (`image`, `video`, `audio`, or `total` for all together). `None` if
    /// there is no limit.
    pub fn of(&self, kind: &str) -> Option<u32> {
        match self {
            Self::All(most) => Some(*most),
            Self::ByKind(most) => most.get(kind).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Profile, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn an_effort_the_model_does_not_know_becomes_its_neighbour() {
        use Effort::{High, Low, Max, Medium, Minimal, None};
        let profile = |efforts: &[Effort]| Profile {
            efforts: Some(efforts.to_vec()),
            ..Profile::default()
        };
        for (known, asked, nearest) in [
            (&[Low, High][..], Medium, Low),
            (&[Low, High], None, Low),
            (&[Low, High], Max, High),
            (&[Minimal, Low], None, Minimal),
            (&[None, Low], None, None),
            (&[], Medium, Medium),
        ] {
            assert_eq!(profile(known).nearest_effort(asked, &[]), nearest);
            assert_eq!(Profile::default().nearest_effort(asked, known), nearest);
        }
    }

    #[test]
    fn values_of_every_form_are_read() {
        let profile = read(
            r#"{"base":"content-1.5-pro","context_tokens":400000,"thinking":"level","vision":true,
            "resolutions":["480p","720p"],"durations":{"min":4,"max":12},"dimensions":1536,
            "references_max":{"image":9,"video":3}}"#,
        )
        .unwrap();
        assert_eq!(profile.base, Some(BuiltInProfile::Content15Pro));
        assert_eq!(profile.context_tokens, Some(400_000));
        assert_eq!(profile.thinking, Some(Thinking::Level));
        assert_eq!(
            profile.durations,
            Some(AllowedValues::Bounds { min: 4, max: 12 })
        );
        assert_eq!(profile.dimensions, Some(AllowedValues::Max(1536)));
        let words = vec!["480p".to_owned(), "720p".to_owned()];
        assert_eq!(profile.resolutions, Some(AllowedValues::Words(words)));
        assert!(matches!(
            profile.references_max,
            Some(References::ByKind(_))
        ));
        assert_eq!(read("{}").unwrap(), Profile::default());
        let again = serde_json::to_string(&profile).unwrap();
        assert_eq!(read(&again).unwrap(), profile);
    }

    #[test]
    fn unknown_members_are_refused_by_name() {
        for (json, word) in [
            (r#"{"contxt_tokens":1}"#, "contxt_tokens"),
            (r#"{"base":"content-9"}"#, "content-9"),
            (r#"{"thinking":"hard"}"#, "hard"),
            (r#"{"context_tokens":-1}"#, "-1"),
        ] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}

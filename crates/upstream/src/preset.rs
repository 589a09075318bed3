//! Vendor presets: default address, credential header, protocols.

use std::fmt;
use std::str::FromStr;

use protocol::{Dialect, OutputLimit};

/// A kind of upstream, with its default address, its credential header and its protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    Openai,
    Anthropic,
    Gemini,
    Xai,
    Ark,
    OpenaiCompatible,
    Sim,
}

/// How a credential is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    /// `authorization: Bearer …`
    Bearer,
    /// The credential alone, in a header of this name.
    Header(&'static str),
}

/// What the `base_url` of a preset already contains, as in the vendor's SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// The address with a version path (`…/v1`).
    Versioned,
    /// The bare host, to which `/v1/…` is appended.
    Bare,
    /// The bare host, to which `/v1beta/…` is appended.
    BareBeta,
}

impl Preset {
    /// All presets, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Openai,
        Self::Anthropic,
        Self::Gemini,
        Self::Xai,
        Self::Ark,
        Self::OpenaiCompatible,
        Self::Sim,
    ];

    /// The name in a configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Xai => "xai",
            Self::Ark => "ark",
            Self::OpenaiCompatible => "openai-compatible",
            Self::Sim => "sim",
        }
    }

    /// Its name for the output limit of a chat request.
    pub fn output_limit(self) -> OutputLimit {
        match self {
            Self::Openai | Self::Xai | Self::Sim => OutputLimit::MaxCompletionTokens,
            Self::Anthropic | Self::Gemini | Self::Ark | Self::OpenaiCompatible => {
                OutputLimit::MaxTokens
            }
        }
    }

    /// The vendor's address, if there is a single one.
    pub fn base_url(self) -> Option<&'static str> {
        match self {
            Self::Openai => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com"),
            Self::Xai => Some("https://api.x.ai/v1"),
            Self::Ark => Some("https://ark.cn-beijing.volces.com/api/v3"),
            Self::OpenaiCompatible | Self::Sim => None,
        }
    }

    /// Whether an upstream at `base_url` (the vendor's own when absent) is trusted to keep the
    /// output limit of a request. Only a vendor's own endpoint is.
    pub fn keeps_output_limit(self, base_url: Option<&str>) -> bool {
        let bare = |url: &str| url.trim_end_matches('/').to_owned();
        self.base_url()
            .is_some_and(|own| base_url.is_none_or(|named| bare(named) == bare(own)))
    }

    /// Whether upstreams of this kind can count the tokens of requests in their own protocols.
    pub fn counts_tokens(self) -> bool {
        match self {
            Self::Openai | Self::Anthropic | Self::Gemini | Self::Sim => true,
            Self::Xai | Self::Ark | Self::OpenaiCompatible => false,
        }
    }

    /// The protocols it speaks unless the configuration says otherwise. Calls in other dialects are
    /// converted to the first text protocol.
    pub fn protocols(self) -> &'static [Protocol] {
        use Protocol::{
            Chat, ContentTask, Embeddings, Generate, Images, Interactions, Messages, Omni, Predict,
            Responses, VideoA, Voice,
        };
        match self {
            Self::Openai => &[Chat, Responses, Embeddings, Images],
            Self::Anthropic => &[Messages],
            // `generate` comes first because it can express more than `interactions`.
            Self::Gemini => &[Generate, Interactions, Omni, Predict],
            Self::Xai => &[Chat, Responses, Images, VideoA, Voice],
            Self::Ark => &[Chat, Responses, Embeddings, Images, ContentTask],
            Self::OpenaiCompatible => &[Chat, Embeddings],
            Self::Sim => &[
                Chat,
                Responses,
                Messages,
                Generate,
                Interactions,
                Embeddings,
                Images,
                VideoA,
                Omni,
                Predict,
                ContentTask,
                Voice,
            ],
        }
    }

    /// Whether the upstream refuses calls without a credential.
    pub fn needs_credential(self) -> bool {
        !matches!(self, Self::OpenaiCompatible | Self::Sim)
    }

    /// The default credential. The simulated upstream requires a key, as vendors do, and accepts
    /// any, so operators need not invent one.
    pub(crate) fn own_credential(self) -> Option<&'static str> {
        matches!(self, Self::Sim).then_some("sim")
    }

    pub(crate) fn auth(self) -> Auth {
        match self {
            Self::Anthropic => Auth::Header("x-api-key"),
            Self::Gemini => Auth::Header("x-goog-api-key"),
            Self::Openai | Self::Xai | Self::Ark | Self::OpenaiCompatible | Self::Sim => {
                Auth::Bearer
            }
        }
    }

    pub(crate) fn base(self) -> Base {
        match self {
            Self::Anthropic => Base::Bare,
            Self::Gemini => Base::BareBeta,
            Self::Openai | Self::Xai | Self::Ark | Self::OpenaiCompatible | Self::Sim => {
                Base::Versioned
            }
        }
    }
}

/// A protocol that a channel can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    Chat,
    Responses,
    Messages,
    Generate,
    Interactions,
    Embeddings,
    Images,
    VideoA,
    Omni,
    Predict,
    ContentTask,
    Voice,
}

impl Protocol {
    const ALL: [Self; 12] = [
        Self::Chat,
        Self::Responses,
        Self::Messages,
        Self::Generate,
        Self::Interactions,
        Self::Embeddings,
        Self::Images,
        Self::VideoA,
        Self::Omni,
        Self::Predict,
        Self::ContentTask,
        Self::Voice,
    ];

    /// The name in a configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Generate => "generate",
            Self::Interactions => "interactions",
            Self::Embeddings => "embeddings",
            Self::Images => "images",
            Self::VideoA => "video-a",
            Self::Omni => "omni",
            Self::Predict => "predict",
            Self::ContentTask => "content-task",
            Self::Voice => "voice",
        }
    }

    /// The text dialect of this protocol; `None` for media protocols.
    pub fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Chat => Some(Dialect::Chat),
            Self::Responses => Some(Dialect::Responses),
            Self::Messages => Some(Dialect::Messages),
            Self::Generate => Some(Dialect::Generate),
            Self::Interactions => Some(Dialect::Interactions),
            _ => None,
        }
    }
}

impl From<Dialect> for Protocol {
    fn from(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Chat => Self::Chat,
            Dialect::Responses => Self::Responses,
            Dialect::Messages => Self::Messages,
            Dialect::Generate => Self::Generate,
            Dialect::Interactions => Self::Interactions,
        }
    }
}

/// An unknown name. Its message lists the known names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    name: String,
    known: String,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is none of: {}", self.name, self.known)
    }
}

impl std::error::Error for UnknownName {}

fn find<T: Copy>(name: &str, all: &[T], as_str: fn(T) -> &'static str) -> Result<T, UnknownName> {
    let found = all.iter().copied().find(|it| as_str(*it) == name);
    found.ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|it| as_str(*it)).collect();
        UnknownName {
            name: name.to_owned(),
            known: known.join(" "),
        }
    })
}

impl FromStr for Preset {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        find(name, &Self::ALL, Self::as_str)
    }
}

impl FromStr for Protocol {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        find(name, &Self::ALL, Self::as_str)
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_vendors_own_endpoint_is_trusted_with_the_output_limit() {
        for (preset, base_url, keeps) in [
            (Preset::Openai, None, true),
            (Preset::Openai, Some("https://api.openai.com/v1/"), true),
            (Preset::Openai, Some("https://proxy.example.com/v1"), false),
            (Preset::Anthropic, None, true),
            (Preset::Gemini, Some("http://127.0.0.1:1"), false),
            (
                Preset::OpenaiCompatible,
                Some("https://api.openai.com/v1"),
                false,
            ),
            (Preset::Sim, Some("http://127.0.0.1:1"), false),
            (Preset::Sim, None, false),
        ] {
            assert_eq!(
                preset.keeps_output_limit(base_url),
                keeps,
                "{preset} {base_url:?}"
            );
        }
    }

    #[test]
    fn every_name_reads_back_as_itself() {
        for preset in Preset::ALL {
            assert_eq!(preset.as_str().parse(), Ok(preset));
        }
        for protocol in Protocol::ALL {
            assert_eq!(protocol.as_str().parse(), Ok(protocol));
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_the_known_ones() {
        let error = "opena".parse::<Preset>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"opena\" is none of: openai anthropic gemini xai ark openai-compatible sim"
        );
    }

    #[test]
    fn a_dialect_is_the_protocol_of_its_name() {
        for protocol in Protocol::ALL {
            if let Some(dialect) = protocol.dialect() {
                assert_eq!(Protocol::from(dialect), protocol);
            }
        }
    }
}

//! Defines the wire format of a chunk.

use super::annotation::Annotation;
use super::audio::{expires_at, silence};
use super::logprobs::Logprobs;
use super::usage::Usage;
use crate::model::Call;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Chunk<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) service_tier: &'static str,
    pub(super) system_fingerprint: &'a str,
    pub(super) choices: &'a [ChunkChoice],
    #[serde(skip_serializing_if = "OptionalMember::is_absent")]
    pub(super) usage: OptionalMember<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) obfuscation: Option<String>,
}

/// A member that can be absent or null. Clients distinguish the two.
#[derive(Default, Serialize)]
#[serde(untagged)]
pub(super) enum OptionalMember<T> {
    #[default]
    Absent,
    Null,
    Given(T),
}

impl<T> OptionalMember<T> {
    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

#[derive(Serialize)]
pub(super) struct ChunkChoice {
    pub(super) index: usize,
    pub(super) delta: Delta,
    pub(super) logprobs: Option<Logprobs>,
    pub(super) finish_reason: Option<&'static str>,
}

/// The content that a chunk adds to its choice. Absent members are not written.
#[derive(Default, Serialize)]
pub(super) struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "OptionalMember::is_absent")]
    content: OptionalMember<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "OptionalMember::is_absent")]
    refusal: OptionalMember<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<AudioDelta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<[Annotation; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[CallDelta; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionDelta>,
}

#[derive(Default, Serialize)]
struct AudioDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transcript: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
}

#[derive(Default, Serialize)]
struct CallDelta {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<FunctionDelta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom: Option<CustomDelta>,
}

#[derive(Serialize)]
struct FunctionDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    arguments: String,
}

#[derive(Serialize)]
struct CustomDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    input: String,
}

impl Delta {
    /// Opens a choice. The content is null if no text follows.
    pub(super) fn role(silent: bool) -> Self {
        Self {
            role: Some("assistant"),
            content: if silent {
                OptionalMember::Null
            } else {
                OptionalMember::Given(String::new())
            },
            refusal: OptionalMember::Null,
            ..Self::default()
        }
    }

    pub(super) fn text(piece: &str) -> Self {
        Self {
            content: OptionalMember::Given(piece.to_owned()),
            ..Self::default()
        }
    }

    pub(super) fn annotation(annotation: Annotation) -> Self {
        Self {
            annotations: Some([annotation]),
            ..Self::default()
        }
    }

    pub(super) fn refusal(piece: &str) -> Self {
        Self {
            refusal: OptionalMember::Given(piece.to_owned()),
            ..Self::default()
        }
    }

    pub(super) fn reasoning(piece: &str) -> Self {
        Self {
            reasoning_content: Some(piece.to_owned()),
            ..Self::default()
        }
    }

    pub(super) fn audio_start(id: String) -> Self {
        Self::audio(AudioDelta {
            id: Some(id),
            transcript: Some(String::new()),
            ..AudioDelta::default()
        })
    }

    pub(super) fn audio_part(piece: &str) -> Self {
        Self::audio(AudioDelta {
            data: Some(silence(piece)),
            transcript: Some(piece.to_owned()),
            ..AudioDelta::default()
        })
    }

    pub(super) fn audio_end(created: u64) -> Self {
        Self::audio(AudioDelta {
            expires_at: Some(expires_at(created)),
            ..AudioDelta::default()
        })
    }

    fn audio(audio: AudioDelta) -> Self {
        Self {
            audio: Some(audio),
            ..Self::default()
        }
    }

    /// Opens a tool call. Its id, type and name are not repeated later.
    pub(super) fn call_start(index: usize, id: String, call: &Call) -> Self {
        let start = CallDelta {
            id: Some(id),
            r#type: Some(if call.custom { "custom" } else { "function" }),
            ..CallDelta::part(index, call.custom, Some(&call.name), "")
        };
        Self {
            tool_calls: Some([start]),
            ..Self::default()
        }
    }

    pub(super) fn call_part(index: usize, custom: bool, piece: &str) -> Self {
        Self {
            tool_calls: Some([CallDelta::part(index, custom, None, piece)]),
            ..Self::default()
        }
    }

    pub(super) fn function_start(call: &Call) -> Self {
        Self {
            function_call: Some(FunctionDelta {
                name: Some(call.name.clone()),
                arguments: String::new(),
            }),
            ..Self::default()
        }
    }

    pub(super) fn function_part(piece: &str) -> Self {
        Self {
            function_call: Some(FunctionDelta {
                name: None,
                arguments: piece.to_owned(),
            }),
            ..Self::default()
        }
    }
}

impl CallDelta {
    fn part(index: usize, custom: bool, name: Option<&str>, piece: &str) -> Self {
        let name = name.map(str::to_owned);
        let piece = piece.to_owned();
        if custom {
            Self {
                index,
                custom: Some(CustomDelta { name, input: piece }),
                ..Self::default()
            }
        } else {
            Self {
                index,
                function: Some(FunctionDelta {
                    name,
                    arguments: piece,
                }),
                ..Self::default()
            }
        }
    }
}

//! One call: what goes out and what comes back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use protocol::Dialect;

use crate::body::Body;
use crate::spool::Spooled;

/// What of the upstream is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Text generation in a dialect; whether it streams stands in the path of some.
    Text { dialect: Dialect, stream: bool },
    /// How many tokens a text request has. Responses, Messages and Generate Content have it.
    TokenCount(Dialect),
    /// Vectors, in the form of the `OpenAI` family.
    Embeddings,
    /// Vectors, in the form of Generate Content: of one content or of several.
    EmbedContent { batch: bool },
    /// New pictures.
    ImageGenerations,
    /// Pictures made from pictures.
    ImageEdits,
    /// Speech from text.
    Speech,
    /// Text from speech.
    Transcript,
    /// The voices that speak, or the one that [`Outgoing::item`] names.
    Voices,
    /// A new video-A task: a video.
    VideoGenerations,
    /// A new video-A task: a video made from a video.
    VideoEdits,
    /// A new video-A task: the continuation of a video.
    VideoExtensions,
    /// How the video-A task stands that [`Outgoing::item`] names.
    Video,
    /// A new operation of long-running predict.
    PredictLongRunning,
    /// How the operation stands that [`Outgoing::item`] names, by a path.
    Operation,
    /// A new content task.
    ContentTasks,
    /// How the content task stands that [`Outgoing::item`] names.
    ContentTask,
    /// The end of the content task that [`Outgoing::item`] names.
    ContentTaskDeletion,
}

impl Endpoint {
    /// The dialect whose habits the endpoint has, in which it also says what went wrong.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Text { dialect, .. } | Self::TokenCount(dialect) => dialect,
            Self::EmbedContent { .. } | Self::PredictLongRunning | Self::Operation => {
                Dialect::Generate
            }
            Self::Embeddings
            | Self::ImageGenerations
            | Self::ImageEdits
            | Self::Speech
            | Self::Transcript
            | Self::Voices
            | Self::VideoGenerations
            | Self::VideoEdits
            | Self::VideoExtensions
            | Self::Video
            | Self::ContentTasks
            | Self::ContentTask
            | Self::ContentTaskDeletion => Dialect::Chat,
        }
    }

    /// The method of a call without a body; none when it has one, and is a POST.
    pub(crate) fn bodiless(self) -> Option<&'static str> {
        match self {
            Self::Voices | Self::Video | Self::Operation | Self::ContentTask => Some("GET"),
            Self::ContentTaskDeletion => Some("DELETE"),
            _ => None,
        }
    }

    /// Whether the protocol is that of voice.
    pub fn is_voice(self) -> bool {
        matches!(self, Self::Speech | Self::Transcript | Self::Voices)
    }
}

/// A call that is ready to go out.
#[derive(Debug)]
pub struct Outgoing {
    pub endpoint: Endpoint,
    /// The upstream's name for the model, which stands in the path of some endpoints.
    pub upstream_model: Arc<str>,
    /// The one thing of a list that is asked for, such as a task.
    pub item: Option<Box<str>>,
    pub content_type: HeaderValue,
    /// The body in order; a large one is not copied together.
    pub body: Vec<Bytes>,
    /// A part of the body that stands in a file.
    pub spooled: Option<Spooled>,
    /// Headers of the caller's that the upstream should see. Those that stand on the list
    /// of this crate go on, all others stay here (K5).
    pub extra: HeaderMap,
}

impl Outgoing {
    /// A JSON call.
    pub fn json(endpoint: Endpoint, upstream_model: impl Into<Arc<str>>, body: Vec<Bytes>) -> Self {
        Self {
            endpoint,
            upstream_model: upstream_model.into(),
            item: None,
            content_type: HeaderValue::from_static("application/json"),
            body,
            spooled: None,
            extra: HeaderMap::new(),
        }
    }

    /// Bytes of the body.
    pub(crate) fn length(&self) -> u64 {
        let pieces: usize = self.body.iter().map(Bytes::len).sum();
        let spooled = self.spooled.as_ref().map_or(0, Spooled::length);
        u64::try_from(pieces)
            .unwrap_or(u64::MAX)
            .saturating_add(spooled)
    }
}

/// An answer's head, as much of it as may be known above, and its body.
#[derive(Debug)]
pub struct Incoming {
    pub status: u16,
    pub content_type: Option<HeaderValue>,
    /// How long the upstream asks us to stay away.
    pub retry_after: Option<Duration>,
    pub body: Body,
}

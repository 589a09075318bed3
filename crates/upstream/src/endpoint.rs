//! The endpoints of upstreams.

use protocol::Dialect;

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
    /// The voices that speak, or the one that [`UpstreamRequest::item`] names.
    Voices,
    /// A new video-A task: a video.
    VideoGenerations,
    /// A new video-A task: a video made from a video.
    VideoEdits,
    /// A new video-A task: the continuation of a video.
    VideoExtensions,
    /// How the video-A task stands that [`UpstreamRequest::item`] names.
    Video,
    /// A new operation of long-running predict.
    PredictLongRunning,
    /// How the operation stands that [`UpstreamRequest::item`] names, by a path.
    Operation,
    /// A new content task.
    ContentTasks,
    /// How the content task stands that [`UpstreamRequest::item`] names.
    ContentTask,
    /// The end of the content task that [`UpstreamRequest::item`] names.
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

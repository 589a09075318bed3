//! The endpoints of upstreams that can be called.

use protocol::Dialect;

/// An endpoint of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Text generation in a dialect. In some dialects the path says whether the answer streams.
    Text { dialect: Dialect, stream: bool },
    /// The number of tokens of a text request. Responses, Messages and Generate Content have it.
    TokenCount(Dialect),
    /// Embeddings in the `OpenAI` form.
    Embeddings,
    /// Embeddings in the form of Generate Content, of one content or of several.
    EmbedContent { batch: bool },
    /// New pictures.
    ImageGenerations,
    /// Pictures made from pictures.
    ImageEdits,
    /// Speech from text.
    Speech,
    /// Text from speech.
    Transcript,
    /// The list of voices, or the voice that `UpstreamRequest::item` names.
    Voices,
    /// A new video-A task: a video.
    VideoGenerations,
    /// A new video-A task: a video made from a video.
    VideoEdits,
    /// A new video-A task: the continuation of a video.
    VideoExtensions,
    /// The state of the video-A task that `UpstreamRequest::item` names.
    Video,
    /// A new long-running operation of predict.
    PredictLongRunning,
    /// The state of the operation whose path `UpstreamRequest::item` holds.
    Operation,
    /// A new content task.
    ContentTasks,
    /// The state of the content task that `UpstreamRequest::item` names.
    ContentTask,
    /// Deletion of the content task that `UpstreamRequest::item` names.
    ContentTaskDeletion,
}

impl Endpoint {
    /// The dialect whose conventions the endpoint follows, including the shape of its errors.
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

    /// The method of an endpoint without a request body. All others take a POST.
    pub(crate) fn bodiless(self) -> Option<&'static str> {
        match self {
            Self::Voices | Self::Video | Self::Operation | Self::ContentTask => Some("GET"),
            Self::ContentTaskDeletion => Some("DELETE"),
            _ => None,
        }
    }

    /// Whether this is an endpoint of the voice protocol.
    pub fn is_voice(self) -> bool {
        matches!(self, Self::Speech | Self::Transcript | Self::Voices)
    }
}

//! The endpoints of upstreams.

use protocol::Dialect;

/// An endpoint of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Text generation in a dialect. In some dialects the path determines whether the answer is
    /// streamed.
    Text { dialect: Dialect, stream: bool },
    /// Text generation by a Messages request in the wire format of Converse.
    Converse { stream: bool },
    /// Counts the tokens of a text request. Responses, Messages and Generate Content have this
    /// endpoint.
    TokenCount(Dialect),
    /// Embeddings in the wire format of `OpenAI`.
    Embeddings,
    /// Embeddings in the wire format of Generate Content, for one content or several.
    EmbedContent { batch: bool },
    /// Embeddings in the instances format of a cloud.
    EmbedInstances,
    /// The embedding of one content in the format of a cloud.
    EmbedHostedContent,
    /// Generates pictures from text.
    ImageGenerations,
    /// Generates pictures from pictures.
    ImageEdits,
    /// Text to speech.
    Speech,
    /// Speech to text.
    Transcript,
    /// The list of voices, or the voice that `UpstreamRequest::item` names.
    Voices,
    /// Creates a video-A task that makes a new video.
    VideoGenerations,
    /// Creates a video-A task that edits a video.
    VideoEdits,
    /// Creates a video-A task that continues a video.
    VideoExtensions,
    /// The state of the video-A task that `UpstreamRequest::item` names.
    Video,
    /// Creates a long-running operation of predict.
    PredictLongRunning,
    /// The state of the operation whose path is in `UpstreamRequest::item`.
    Operation,
    /// Like `Operation`, for clouds that expect a POST. Their channels use it instead of
    /// `Operation`.
    FetchOperation,
    /// Creates a content task.
    ContentTasks,
    /// The state of the content task that `UpstreamRequest::item` names.
    ContentTask,
    /// Deletes the content task that `UpstreamRequest::item` names.
    ContentTaskDeletion,
    /// The list of the models that the account can call.
    Models,
}

impl Endpoint {
    /// The dialect whose conventions the endpoint follows, including the shape of its errors.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Text { dialect, .. } | Self::TokenCount(dialect) => dialect,
            Self::Converse { .. } => Dialect::Messages,
            Self::EmbedContent { .. }
            | Self::EmbedInstances
            | Self::EmbedHostedContent
            | Self::PredictLongRunning
            | Self::Operation
            | Self::FetchOperation => Dialect::Generate,
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
            | Self::ContentTaskDeletion
            | Self::Models => Dialect::Chat,
        }
    }

    /// The method of an endpoint without a request body; `None` for all others, which use POST.
    pub(crate) fn bodiless(self) -> Option<&'static str> {
        match self {
            Self::Voices | Self::Video | Self::Operation | Self::ContentTask | Self::Models => {
                Some("GET")
            }
            Self::ContentTaskDeletion => Some("DELETE"),
            _ => None,
        }
    }

    /// Whether this is a Messages endpoint in the vendor's own wire format.
    pub(crate) fn is_native_messages(self) -> bool {
        self.dialect() == Dialect::Messages && !matches!(self, Self::Converse { .. })
    }

    /// Whether this is an endpoint of the voice protocol.
    pub fn is_voice(self) -> bool {
        matches!(self, Self::Speech | Self::Transcript | Self::Voices)
    }
}

//! The endpoints of upstreams that can be called.

use protocol::Dialect;

/// An endpoint of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Text generation in a dialect. In some dialects the path says whether the answer streams.
    Text { dialect: Dialect, stream: bool },
    /// Text generation by a Messages request in the notation of Converse.
    Converse { stream: bool },
    /// The number of tokens of a text request. Responses, Messages and Generate Content have it.
    TokenCount(Dialect),
    /// Embeddings in the `OpenAI` form.
    Embeddings,
    /// Embeddings in the form of Generate Content, of one content or of several.
    EmbedContent { batch: bool },
    /// Embeddings in the instances form of a cloud.
    EmbedInstances,
    /// The embedding of one content in the form of a cloud.
    EmbedHostedContent,
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
    /// Like `Operation`, at a cloud that expects a POST. Channels use it instead of `Operation`.
    FetchOperation,
    /// A new content task.
    ContentTasks,
    /// The state of the content task that `UpstreamRequest::item` names.
    ContentTask,
    /// Deletion of the content task that `UpstreamRequest::item` names.
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

    /// The method of an endpoint without a request body. All others take a POST.
    pub(crate) fn bodiless(self) -> Option<&'static str> {
        match self {
            Self::Voices | Self::Video | Self::Operation | Self::ContentTask | Self::Models => {
                Some("GET")
            }
            Self::ContentTaskDeletion => Some("DELETE"),
            _ => None,
        }
    }

    /// Whether this is an endpoint of Messages in the vendor's own notation.
    pub(crate) fn is_native_messages(self) -> bool {
        self.dialect() == Dialect::Messages && !matches!(self, Self::Converse { .. })
    }

    /// Whether this is an endpoint of the voice protocol.
    pub fn is_voice(self) -> bool {
        matches!(self, Self::Speech | Self::Transcript | Self::Voices)
    }
}

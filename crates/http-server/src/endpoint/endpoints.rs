//! The endpoints of the public listener.

use engine::{EmbeddingsPath, TextPath, VideoEndpoint, VoiceForm};
use protocol::Dialect;
use protocol::images::Operation as ImageOperation;
use protocol::video::video_a::Operation;
use store::MediaName;

/// Content tasks are created, listed, shown and deleted under one path.
pub(super) const CONTENT_TASKS: &str = "/v1/contents/generations/tasks";

/// The files of the callers' page are served below this path and their version.
pub(crate) const PAGE_FILES: &str = "/page";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `GET /v1/models`
    Models,
    /// `GET /v1/models/{id}`
    Model(String),
    /// `GET /v1beta/models`
    GoogleModels,
    /// `GET /v1beta/models/{id}`
    GoogleModel(String),
    /// `GET /v1/balance`
    Balance,
    /// A text generation call whose body names the model.
    Text(Dialect),
    /// A text generation call whose path names the model: Generate Content.
    Named(TextPath),
    /// The token count of a text request whose body names the model.
    TokenCount(Dialect),
    /// The token count of a text request whose path names the model: Generate Content.
    NamedTokenCount(String),
    /// `POST /v1/embeddings`
    Embeddings,
    /// `POST /v1/images/generations` or `/v1/images/edits`
    Images(ImageOperation),
    /// A call for embeddings whose path names the model: Generate Content.
    Contents(EmbeddingsPath),
    /// `POST /v1/tts`, or its alias for SDKs.
    Speech(VoiceForm),
    /// `POST /v1/stt`, or its alias for SDKs.
    Transcript(VoiceForm),
    /// `GET /v1/tts/voices`, or one voice.
    Voices(Option<String>),
    /// Creates a video task.
    Video(VideoEndpoint),
    /// Shows a task.
    Task(String),
    WebSocket(WebSocketPath),
    /// A stored media file; `None` if the name is not a valid media name. Needs no API key.
    Media(MediaPath, Option<MediaName>),
    /// `GET /v1/contents/generations/tasks`
    ContentTasks,
    /// `DELETE /v1/contents/generations/tasks/{id}`
    TaskDeletion(String),
    /// `GET /`: the page for callers. It needs no API key.
    Page,
    /// A file of the page, by its path below the version. It needs no API key.
    PageFile(String),
    /// `GET /openapi.json`. It needs no API key.
    OpenApi,
    /// A path or method that is not served.
    Unknown,
}

impl Endpoint {
    /// Whether the endpoint calls a model.
    pub(crate) fn is_call(&self) -> bool {
        matches!(
            self,
            Self::Text(_)
                | Self::Named(_)
                | Self::TokenCount(_)
                | Self::NamedTokenCount(_)
                | Self::Embeddings
                | Self::Contents(_)
                | Self::Images(_)
                | Self::Speech(_)
                | Self::Transcript(_)
                | Self::Voices(_)
                | Self::Video(_)
                | Self::WebSocket(_)
        )
    }

    /// The path for logs and metrics, with placeholders in place of ids.
    pub(crate) fn template(&self) -> &'static str {
        match self {
            Self::Models => "/v1/models",
            Self::Model(_) => "/v1/models/{id}",
            Self::GoogleModels => "/v1beta/models",
            Self::GoogleModel(_) => "/v1beta/models/{id}",
            Self::Balance => "/v1/balance",
            Self::Text(Dialect::Chat) => "/v1/chat/completions",
            Self::Text(Dialect::Responses) => "/v1/responses",
            Self::Text(Dialect::Messages) => "/v1/messages",
            Self::Text(Dialect::Generate) | Self::Named(_) => "/v1beta/models/{id}:generateContent",
            Self::Text(Dialect::Interactions) | Self::Video(VideoEndpoint::Omni) => {
                "/v1beta/interactions"
            }
            Self::TokenCount(Dialect::Responses) => "/v1/responses/input_tokens",
            Self::TokenCount(_) => "/v1/messages/count_tokens",
            Self::NamedTokenCount(_) => "/v1beta/models/{id}:countTokens",
            Self::Embeddings => "/v1/embeddings",
            Self::Images(ImageOperation::Generation) => "/v1/images/generations",
            Self::Images(ImageOperation::Edit) => "/v1/images/edits",
            Self::Contents(EmbeddingsPath { batch: false, .. }) => {
                "/v1beta/models/{id}:embedContent"
            }
            Self::Contents(EmbeddingsPath { batch: true, .. }) => {
                "/v1beta/models/{id}:batchEmbedContents"
            }
            Self::Speech(VoiceForm::Own) => "/v1/tts",
            Self::Speech(VoiceForm::Renamed) => "/v1/audio/speech",
            Self::Transcript(VoiceForm::Own) => "/v1/stt",
            Self::Transcript(VoiceForm::Renamed) => "/v1/audio/transcriptions",
            Self::Voices(None) => "/v1/tts/voices",
            Self::Voices(Some(_)) => "/v1/tts/voices/{voice_id}",
            Self::Video(VideoEndpoint::VideoA(Operation::Generation)) => "/v1/videos/generations",
            Self::Video(VideoEndpoint::VideoA(Operation::Edit)) => "/v1/videos/edits",
            Self::Video(VideoEndpoint::VideoA(Operation::Extension)) => "/v1/videos/extensions",
            Self::Video(VideoEndpoint::Predict(_)) => "/v1beta/models/{id}:predictLongRunning",
            Self::Video(VideoEndpoint::ContentTask) | Self::ContentTasks => CONTENT_TASKS,
            Self::TaskDeletion(_) => "/v1/contents/generations/tasks/{id}",
            Self::Task(_) => "/v1/tasks/{id}",
            Self::WebSocket(WebSocketPath::Realtime) => "/v1/realtime",
            Self::WebSocket(WebSocketPath::Speech) => "/v1/tts (socket)",
            Self::WebSocket(WebSocketPath::Transcript) => "/v1/stt (socket)",
            Self::Media(MediaPath::Inline, _) => "/media/{id}",
            Self::Media(MediaPath::Download, _) => "/v1beta/files/{id}:download",
            Self::Page => "/",
            Self::PageFile(_) => "/page/{file}",
            Self::OpenApi => "/openapi.json",
            Self::Unknown => "unknown",
        }
    }
}

/// The three paths of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WebSocketPath {
    Realtime,
    Speech,
    Transcript,
}

/// The path by which a client fetches a media file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaPath {
    /// `/media/{id}.{extension}`, which a browser shows.
    Inline,
    /// `/v1beta/files/{id}:download`, which a browser saves.
    Download,
}

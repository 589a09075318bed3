//! Which endpoint a request names, and whose envelope its errors wear.
//!
//! Pure: a method and a path go in. Unknown and not-exposed paths still have a family, so that
//! every SDK gets a 404 that it can read.

use std::borrow::Cow;

use engine::{EmbeddingsPath, TextPath, VideoEndpoint, VoiceForm};
use http::Method;
use protocol::images::Asked;
use protocol::video::video_a::Operation;
use protocol::{Dialect, Family};
use store::{MediaId, MediaName, MediaType};

use crate::http::handlers::media;
use crate::http::handlers::websocket::SocketPath;

/// Content tasks: made, listed, shown and deleted under one path.
const CONTENT_TASKS: &str = "/v1/contents/generations/tasks";

/// An endpoint, with what its path carries.
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
    Images(Asked),
    /// Vectors of contents, whose path names the model.
    Contents(EmbeddingsPath),
    /// `POST /v1/tts`, or the name that SDKs know.
    Speech(VoiceForm),
    /// `POST /v1/stt`, or the name that SDKs know.
    Transcript(VoiceForm),
    /// `GET /v1/tts/voices`, or one of them.
    Voices(Option<String>),
    /// A new task.
    Video(VideoEndpoint),
    /// A task by its id.
    Task(String),
    /// A socket.
    Socket(SocketPath),
    /// A kept medium, if its name is one; nobody needs a key for it.
    Media(media::Asked, Option<MediaName>),
    /// `GET /v1/contents/generations/tasks`
    ContentTasks,
    /// `DELETE /v1/contents/generations/tasks/{id}`
    TaskDeletion(String),
    /// Nothing that is served.
    Unknown,
}

impl Endpoint {
    /// Whether a model is called here.
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
                | Self::Socket(_)
        )
    }
}

/// Where a request arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Surface {
    pub(crate) endpoint: Endpoint,
    /// The family of the error envelope and of the accepted credentials.
    pub(crate) family: Family,
}

impl Surface {
    /// Finds the endpoint of a request line.
    ///
    /// `aliases` are paths that the contract does not name and current SDKs call
    /// (docs/decisions/008); operators may switch them off.
    pub(crate) fn find(method: &Method, path: &str, aliases: bool) -> Self {
        let path = unaliased(path, aliases);
        let path = &*path;
        let endpoint = match method.as_str() {
            "GET" | "HEAD" => medium(path, aliases).unwrap_or_else(|| asked(path)),
            "POST" => called(path, aliases),
            "DELETE" => deleted(path),
            _ => Endpoint::Unknown,
        };
        Self {
            endpoint,
            family: family(method, path),
        }
    }

    /// Whether something is served at a path, with whatever method.
    pub(crate) fn is_path(path: &str, aliases: bool) -> bool {
        [Method::GET, Method::POST, Method::DELETE]
            .iter()
            .any(|method| Self::find(method, path, aliases).endpoint != Endpoint::Unknown)
    }

    /// The path as logs and metrics may show it: ids replaced by their names.
    pub(crate) fn template(&self) -> &'static str {
        match &self.endpoint {
            Endpoint::Models => "/v1/models",
            Endpoint::Model(_) => "/v1/models/{id}",
            Endpoint::GoogleModels => "/v1beta/models",
            Endpoint::GoogleModel(_) => "/v1beta/models/{id}",
            Endpoint::Balance => "/v1/balance",
            Endpoint::Text(Dialect::Chat) => "/v1/chat/completions",
            Endpoint::Text(Dialect::Responses) => "/v1/responses",
            Endpoint::Text(Dialect::Messages) => "/v1/messages",
            Endpoint::Text(Dialect::Generate) | Endpoint::Named(_) => {
                "/v1beta/models/{id}:generateContent"
            }
            Endpoint::Text(Dialect::Interactions) | Endpoint::Video(VideoEndpoint::Omni) => {
                "/v1beta/interactions"
            }
            Endpoint::TokenCount(Dialect::Responses) => "/v1/responses/input_tokens",
            Endpoint::TokenCount(_) => "/v1/messages/count_tokens",
            Endpoint::NamedTokenCount(_) => "/v1beta/models/{id}:countTokens",
            Endpoint::Embeddings => "/v1/embeddings",
            Endpoint::Images(Asked::Generation) => "/v1/images/generations",
            Endpoint::Images(Asked::Edit) => "/v1/images/edits",
            Endpoint::Contents(EmbeddingsPath { batch: false, .. }) => {
                "/v1beta/models/{id}:embedContent"
            }
            Endpoint::Contents(EmbeddingsPath { batch: true, .. }) => {
                "/v1beta/models/{id}:batchEmbedContents"
            }
            Endpoint::Speech(VoiceForm::Own) => "/v1/tts",
            Endpoint::Speech(VoiceForm::Renamed) => "/v1/audio/speech",
            Endpoint::Transcript(VoiceForm::Own) => "/v1/stt",
            Endpoint::Transcript(VoiceForm::Renamed) => "/v1/audio/transcriptions",
            Endpoint::Voices(None) => "/v1/tts/voices",
            Endpoint::Voices(Some(_)) => "/v1/tts/voices/{voice_id}",
            Endpoint::Video(VideoEndpoint::VideoA(Operation::Generation)) => {
                "/v1/videos/generations"
            }
            Endpoint::Video(VideoEndpoint::VideoA(Operation::Edit)) => "/v1/videos/edits",
            Endpoint::Video(VideoEndpoint::VideoA(Operation::Extension)) => "/v1/videos/extensions",
            Endpoint::Video(VideoEndpoint::Predict(_)) => "/v1beta/models/{id}:predictLongRunning",
            Endpoint::Video(VideoEndpoint::ContentTask) | Endpoint::ContentTasks => CONTENT_TASKS,
            Endpoint::TaskDeletion(_) => "/v1/contents/generations/tasks/{id}",
            Endpoint::Task(_) => "/v1/tasks/{id}",
            Endpoint::Socket(SocketPath::Realtime) => "/v1/realtime",
            Endpoint::Socket(SocketPath::Speech) => "/v1/tts (socket)",
            Endpoint::Socket(SocketPath::Transcript) => "/v1/stt (socket)",
            Endpoint::Media(media::Asked::Look, _) => "/media/{id}",
            Endpoint::Media(media::Asked::Save, _) => "/v1beta/files/{id}:download",
            Endpoint::Unknown => "unknown",
        }
    }
}

/// `/media/{id}.mp4`, and the name that clients of Generate Content know, which has no ending: what they
/// ask for are videos.
fn medium(path: &str, aliases: bool) -> Option<Endpoint> {
    if let Some(name) = path.strip_prefix("/media/") {
        return Some(Endpoint::Media(media::Asked::Look, MediaName::parse(name)));
    }
    let file = path
        .strip_prefix("/v1beta/files/")
        .or_else(|| path.strip_prefix("/v1/files/").filter(|_| aliases));
    let id = file?.strip_suffix(":download")?;
    let name = MediaId::parse(id).map(|id| MediaName {
        id,
        kind: MediaType::Mp4,
    });
    Some(Endpoint::Media(media::Asked::Save, name))
}

/// The contract's path of one that is copied from the samples of the content-task vendor.
fn unaliased(path: &str, aliases: bool) -> Cow<'_, str> {
    match path.strip_prefix("/api/v3/contents/") {
        Some(rest) if aliases => Cow::Owned(format!("/v1/contents/{rest}")),
        _ => Cow::Borrowed(path),
    }
}

fn asked(path: &str) -> Endpoint {
    match path {
        "/v1/models" => Endpoint::Models,
        "/v1beta/models" => Endpoint::GoogleModels,
        "/v1/balance" => Endpoint::Balance,
        "/v1/tts/voices" => Endpoint::Voices(None),
        "/v1/realtime" => Endpoint::Socket(SocketPath::Realtime),
        "/v1/tts" => Endpoint::Socket(SocketPath::Speech),
        "/v1/stt" => Endpoint::Socket(SocketPath::Transcript),
        CONTENT_TASKS => Endpoint::ContentTasks,
        _ => named_voice(path)
            .or_else(|| task(path))
            .unwrap_or_else(|| named_model(path)),
    }
}

/// `/v1/tasks/{id}`, and the paths that the protocols' own clients poll.
fn task(path: &str) -> Option<Endpoint> {
    let id = [
        "/v1/tasks/",
        "/v1/videos/",
        "/v1beta/interactions/",
        "/v1/interactions/",
    ]
    .iter()
    .find_map(|prefix| path.strip_prefix(prefix))
    .or_else(|| content_task(path))
    .or_else(|| operation(path))?;
    Some(Endpoint::Task(id.to_owned()))
}

/// An operation's name is the bare id of its task; older clients build longer ones:
/// `operations/{id}`, `models/{model}/operations/{id}`.
fn operation(path: &str) -> Option<&str> {
    let name = path
        .strip_prefix("/v1beta/")
        .or_else(|| path.strip_prefix("/v1/"))?;
    if let Some(id) = name.strip_prefix("operations/") {
        return Some(id);
    }
    if name.starts_with("models/") {
        return name.rsplit_once("/operations/").map(|(_, id)| id);
    }
    is_task_id(name).then_some(name)
}

/// Whether a text has the form of a task's id, so that no other name of one part is taken for one.
fn is_task_id(text: &str) -> bool {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq(GROUPS)
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn deleted(path: &str) -> Endpoint {
    match content_task(path) {
        Some(id) => Endpoint::TaskDeletion(id.to_owned()),
        None => Endpoint::Unknown,
    }
}

fn content_task(path: &str) -> Option<&str> {
    path.strip_prefix(CONTENT_TASKS)?.strip_prefix('/')
}

fn called(path: &str, aliases: bool) -> Endpoint {
    match path {
        "/v1/chat/completions" => Endpoint::Text(Dialect::Chat),
        "/v1/responses" => Endpoint::Text(Dialect::Responses),
        "/v1/messages" => Endpoint::Text(Dialect::Messages),
        "/v1/responses/input_tokens" if aliases => Endpoint::TokenCount(Dialect::Responses),
        "/v1/messages/count_tokens" if aliases => Endpoint::TokenCount(Dialect::Messages),
        "/v1beta/interactions" => Endpoint::Text(Dialect::Interactions),
        "/v1/embeddings" => Endpoint::Embeddings,
        "/v1/images/generations" => Endpoint::Images(Asked::Generation),
        "/v1/images/edits" => Endpoint::Images(Asked::Edit),
        "/v1/tts" => Endpoint::Speech(VoiceForm::Own),
        "/v1/audio/speech" if aliases => Endpoint::Speech(VoiceForm::Renamed),
        "/v1/stt" => Endpoint::Transcript(VoiceForm::Own),
        "/v1/audio/transcriptions" if aliases => Endpoint::Transcript(VoiceForm::Renamed),
        "/v1/videos/generations" => Endpoint::Video(VideoEndpoint::VideoA(Operation::Generation)),
        "/v1/videos/edits" => Endpoint::Video(VideoEndpoint::VideoA(Operation::Edit)),
        "/v1/videos/extensions" => Endpoint::Video(VideoEndpoint::VideoA(Operation::Extension)),
        CONTENT_TASKS => Endpoint::Video(VideoEndpoint::ContentTask),
        "/v1/interactions" if aliases => Endpoint::Text(Dialect::Interactions),
        _ => named_call(path, aliases).unwrap_or(Endpoint::Unknown),
    }
}

/// `/v1beta/models/{model}:generateContent`, also under `/v1`. One SDK takes an id with a slash
/// for a whole path and leaves `models/` out.
fn named_call(path: &str, aliases: bool) -> Option<Endpoint> {
    let rest = path
        .strip_prefix("/v1/models/")
        .or_else(|| path.strip_prefix("/v1beta/models/"))
        .or_else(|| path.strip_prefix("/v1beta/").filter(|_| aliases))?;
    let (model, action) = rest.rsplit_once(':')?;
    let model = percent_decoded(model).filter(|model| !model.is_empty())?;
    let model = model.into_owned();
    let named = |model, stream| Endpoint::Named(TextPath { model, stream });
    let contents = |model, batch| Endpoint::Contents(EmbeddingsPath { model, batch });
    Some(match action {
        "generateContent" => named(model, false),
        "streamGenerateContent" => named(model, true),
        "countTokens" if aliases => Endpoint::NamedTokenCount(model),
        "predictLongRunning" => Endpoint::Video(VideoEndpoint::Predict(model)),
        "embedContent" if aliases => contents(model, false),
        "batchEmbedContents" if aliases => contents(model, true),
        _ => return None,
    })
}

fn named_voice(path: &str) -> Option<Endpoint> {
    let voice = percent_decoded(path.strip_prefix("/v1/tts/voices/")?)?;
    (!voice.is_empty()).then(|| Endpoint::Voices(Some(voice.into_owned())))
}

fn named_model(path: &str) -> Endpoint {
    let (prefix, found): (_, fn(String) -> Endpoint) = if path.starts_with("/v1/") {
        ("/v1/models/", Endpoint::Model)
    } else {
        ("/v1beta/models/", Endpoint::GoogleModel)
    };
    match path.strip_prefix(prefix).map(percent_decoded) {
        Some(Some(id)) if !id.is_empty() => found(id.into_owned()),
        _ => Endpoint::Unknown,
    }
}

/// The family is read off the request line alone, so that it is known for what is not served as
/// well.
fn family(method: &Method, path: &str) -> Family {
    let is_asking = method == Method::GET || method == Method::HEAD;
    let below = |root: &str| {
        path.strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // Generate Content names its action behind a colon: `/v1/models/{model}:generateContent`. In
    // a path that only asks, a colon is the model's own.
    let is_action = |root: &str| {
        let rest = path.strip_prefix(root);
        !is_asking && rest.is_some_and(|rest| rest.contains(':'))
    };
    let is_download = path.starts_with("/v1/files/") && path.ends_with(":download");
    if below("/v1/messages") {
        Family::Messages
    } else if below("/v1beta/interactions") || below("/v1/interactions") {
        Family::Interactions
    } else if below("/v1beta")
        || below("/upload")
        || is_action("/v1/models/")
        || is_download
        || (is_asking && operation(path).is_some())
    {
        Family::Google
    } else {
        Family::OpenAi
    }
}

/// Decodes `%XX` once; `None` when the result is no UTF-8 or an escape is cut.
pub(crate) fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            decoded.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

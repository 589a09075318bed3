//! Finds the endpoint of a request, and the endpoint family that decides its error envelope and credentials.
//!
//! This is a pure function of method and path. Paths that are not served also have a family, so that every SDK gets a
//! 404 in its own format.

use std::borrow::Cow;

use engine::{EmbeddingsPath, TextPath, VideoEndpoint, VoiceForm};
use http::Method;
use protocol::images::Operation as ImageOperation;
use protocol::video::video_a::Operation;
use protocol::{Dialect, Family};
use store::{MediaId, MediaName, MediaType};

use super::endpoints::{CONTENT_TASKS, Endpoint, MediaPath, PAGE_FILES, WebSocketPath};
use crate::percent::percent_decoded;

/// The endpoint and the family of a request line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) endpoint: Endpoint,
    /// Decides the error envelope and the accepted credentials.
    pub(crate) family: Family,
}

impl Target {
    /// Finds the endpoint of a request line.
    ///
    /// `aliases` says whether to serve paths that current SDKs call but the API does not define (`docs/decisions/008`).
    pub(crate) fn find(method: &Method, path: &str, aliases: bool) -> Self {
        let path = unaliased(path, aliases);
        let path = &*path;
        let endpoint = match method.as_str() {
            "GET" | "HEAD" => media(path, aliases).unwrap_or_else(|| of_get(path)),
            "POST" => of_post(path, aliases),
            "DELETE" => of_delete(path),
            _ => Endpoint::Unknown,
        };
        Self {
            endpoint,
            family: family(method, path),
        }
    }

    /// Whether any method is served at this path.
    pub(crate) fn is_served(path: &str, aliases: bool) -> bool {
        [Method::GET, Method::POST, Method::DELETE]
            .iter()
            .any(|method| Self::find(method, path, aliases).endpoint != Endpoint::Unknown)
    }
}

/// Whether a request line names an endpoint that needs a key. Aliases count even if they are not served.
pub fn is_callable_path(method: &Method, path: &str) -> bool {
    !matches!(
        Target::find(method, path, true).endpoint,
        Endpoint::Unknown
            | Endpoint::Media(..)
            | Endpoint::Page
            | Endpoint::PageFile(_)
            | Endpoint::OpenApi
    )
}

/// Finds `/media/{id}.{extension}`, and the path that clients of Generate Content use. Their path has no extension,
/// because they only download MP4 videos.
fn media(path: &str, aliases: bool) -> Option<Endpoint> {
    if let Some(name) = path.strip_prefix("/media/") {
        return Some(Endpoint::Media(MediaPath::Inline, MediaName::parse(name)));
    }
    let file = path
        .strip_prefix("/v1beta/files/")
        .or_else(|| path.strip_prefix("/v1/files/").filter(|_| aliases));
    let id = file?.strip_suffix(":download")?;
    let name = MediaId::parse(id).map(|id| MediaName {
        id,
        kind: MediaType::Mp4,
    });
    Some(Endpoint::Media(MediaPath::Download, name))
}

/// Replaces the path in the samples of the content-task vendor with the path of our API.
fn unaliased(path: &str, aliases: bool) -> Cow<'_, str> {
    match path.strip_prefix("/api/v3/contents/") {
        Some(rest) if aliases => Cow::Owned(format!("/v1/contents/{rest}")),
        _ => Cow::Borrowed(path),
    }
}

fn of_get(path: &str) -> Endpoint {
    match path {
        "/v1/models" => Endpoint::Models,
        "/v1beta/models" => Endpoint::GoogleModels,
        "/v1/balance" => Endpoint::Balance,
        "/v1/tts/voices" => Endpoint::Voices(None),
        "/v1/realtime" => Endpoint::WebSocket(WebSocketPath::Realtime),
        "/v1/tts" => Endpoint::WebSocket(WebSocketPath::Speech),
        "/v1/stt" => Endpoint::WebSocket(WebSocketPath::Transcript),
        CONTENT_TASKS => Endpoint::ContentTasks,
        "/" => Endpoint::Page,
        "/openapi.json" => Endpoint::OpenApi,
        _ => page_file(path)
            .or_else(|| named_voice(path))
            .or_else(|| task(path))
            .unwrap_or_else(|| named_model(path)),
    }
}

fn page_file(path: &str) -> Option<Endpoint> {
    let file = path.strip_prefix(PAGE_FILES)?.strip_prefix('/')?;
    Some(Endpoint::PageFile(file.to_owned()))
}

/// Finds `/v1/tasks/{id}`, and the paths that the protocols' own clients poll.
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

/// The task id in the name of an operation. The name is the bare id, but older clients build longer names:
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

/// Whether a text has the form of a task id, so that other paths of one segment are not mistaken for tasks.
fn is_task_id(text: &str) -> bool {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq(GROUPS)
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn of_delete(path: &str) -> Endpoint {
    match content_task(path) {
        Some(id) => Endpoint::TaskDeletion(id.to_owned()),
        None => Endpoint::Unknown,
    }
}

fn content_task(path: &str) -> Option<&str> {
    path.strip_prefix(CONTENT_TASKS)?.strip_prefix('/')
}

fn of_post(path: &str, aliases: bool) -> Endpoint {
    match path {
        "/v1/chat/completions" => Endpoint::Text(Dialect::Chat),
        "/v1/responses" => Endpoint::Text(Dialect::Responses),
        "/v1/messages" => Endpoint::Text(Dialect::Messages),
        "/v1/responses/input_tokens" if aliases => Endpoint::TokenCount(Dialect::Responses),
        "/v1/messages/count_tokens" if aliases => Endpoint::TokenCount(Dialect::Messages),
        "/v1beta/interactions" => Endpoint::Text(Dialect::Interactions),
        "/v1/embeddings" => Endpoint::Embeddings,
        "/v1/images/generations" => Endpoint::Images(ImageOperation::Generation),
        "/v1/images/edits" => Endpoint::Images(ImageOperation::Edit),
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

/// Finds calls whose path names the model, such as `/v1beta/models/{model}:generateContent`, also under `/v1`. One SDK
/// mistakes a model id with a slash for a complete resource name and leaves out `models/`.
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

/// The family depends only on method and path, so a path that is not served has a family too.
fn family(method: &Method, path: &str) -> Family {
    let is_read = method == Method::GET || method == Method::HEAD;
    let below = |root: &str| {
        path.strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // Generate Content puts its action after a colon: `/v1/models/{model}:generateContent`. In the path of a GET, a
    // colon is part of the model's name.
    let is_action = |root: &str| {
        let rest = path.strip_prefix(root);
        !is_read && rest.is_some_and(|rest| rest.contains(':'))
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
        || (is_read && operation(path).is_some())
    {
        Family::Google
    } else {
        Family::OpenAi
    }
}

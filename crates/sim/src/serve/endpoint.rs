//! Finds the endpoint of a request by method and path.

use crate::content_task::{self, TaskPath};
use crate::{amazon, embed, generate, google, predict};
use http::Method;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint<'a> {
    Chat,
    /// Messages at Amazon Bedrock, where the path names the model.
    Invoke,
    /// Converse at Amazon Bedrock.
    Converse,
    Embed,
    Embeddings,
    Generate,
    ImageEdits,
    ImageGenerations,
    Interactions,
    Responses,
    Messages,
    /// Counts the tokens of a request. Three protocols have such an endpoint.
    ResponseCount,
    MessageCount,
    GenerateCount,
    Speech,
    Transcript,
    Voices,
    Voice(&'a str),
    Models,
    Model(&'a str),
    CreateVideo,
    PollVideo,
    VideoFile,
    /// Creates a video operation.
    Predict,
    /// Polls a video operation.
    Operation,
    /// Serves a video file of the Google protocols.
    File,
    /// Creates a content task.
    ContentTasks,
    /// Lists the content tasks.
    ContentTaskList,
    /// Polls a content task.
    ContentTask,
    ContentTaskDeletion,
    /// Serves a result of a content task.
    ContentFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoEndpoint {
    Path,
    Method,
}

pub(super) fn find<'a>(method: &Method, path: &'a str) -> Result<Endpoint<'a>, NoEndpoint> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if let Some(found) = content_task(method, path) {
        return found;
    }
    let (wanted, endpoint) = match path {
        "/v1/chat/completions" | "/openai/v1/chat/completions" => (Method::POST, Endpoint::Chat),
        "/v1/responses" | "/openai/v1/responses" => (Method::POST, Endpoint::Responses),
        "/v1/messages" | "/anthropic/v1/messages" => (Method::POST, Endpoint::Messages),
        "/v1/messages/count_tokens" => (Method::POST, Endpoint::MessageCount),
        "/v1/responses/input_tokens" => (Method::POST, Endpoint::ResponseCount),
        "/v1/interactions" | "/v1beta/interactions" => (Method::POST, Endpoint::Interactions),
        "/v1/embeddings" => (Method::POST, Endpoint::Embeddings),
        "/v1/images/edits" => (Method::POST, Endpoint::ImageEdits),
        "/v1/images/generations" => (Method::POST, Endpoint::ImageGenerations),
        "/v1/tts" => (Method::POST, Endpoint::Speech),
        "/v1/stt" => (Method::POST, Endpoint::Transcript),
        "/v1/tts/voices" => (Method::GET, Endpoint::Voices),
        "/v1/models" => (Method::GET, Endpoint::Models),
        "/v1/videos/generations" | "/v1/videos/edits" | "/v1/videos/extensions" => {
            (Method::POST, Endpoint::CreateVideo)
        }
        _ if path.starts_with("/v1/videos/films/") => (Method::GET, Endpoint::VideoFile),
        _ if path.starts_with("/v1/videos/") => (Method::GET, Endpoint::PollVideo),
        _ if amazon::is_converse(path) => (Method::POST, Endpoint::Converse),
        _ if amazon::is_target(path) => (Method::POST, Endpoint::Invoke),
        _ if predict::is_target(path) => (Method::POST, Endpoint::Predict),
        _ if predict::is_operation(path) => (Method::GET, Endpoint::Operation),
        _ if google::is_file(path) => (Method::GET, Endpoint::File),
        _ if generate::is_count(path) => (Method::POST, Endpoint::GenerateCount),
        _ if generate::is_target(path) => (Method::POST, Endpoint::Generate),
        _ if embed::is_target(path) => (Method::POST, Endpoint::Embed),
        _ => match (
            path.strip_prefix("/v1/models/"),
            path.strip_prefix("/v1/tts/voices/"),
        ) {
            (Some(id), _) if !id.is_empty() => (Method::GET, Endpoint::Model(id)),
            (_, Some(id)) => (Method::GET, Endpoint::Voice(id)),
            _ => return Err(NoEndpoint::Path),
        },
    };
    if *method == wanted {
        Ok(endpoint)
    } else {
        Err(NoEndpoint::Method)
    }
}

/// Finds the endpoint of a content-task path. Several methods are allowed on these paths.
fn content_task(method: &Method, path: &str) -> Option<Result<Endpoint<'static>, NoEndpoint>> {
    let place = content_task::task_path(path)?;
    let found = match (place, method) {
        (TaskPath::All, &Method::POST) => Endpoint::ContentTasks,
        (TaskPath::All, &Method::GET) => Endpoint::ContentTaskList,
        (TaskPath::One(_), &Method::GET) => Endpoint::ContentTask,
        (TaskPath::One(_), &Method::DELETE) => Endpoint::ContentTaskDeletion,
        (TaskPath::File(_), &Method::GET) => Endpoint::ContentFile,
        _ => return Some(Err(NoEndpoint::Method)),
    };
    Some(Ok(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_their_endpoints() {
        for (method, path, expected) in [
            (Method::POST, "/v1/chat/completions", Ok(Endpoint::Chat)),
            (Method::GET, "/v1/chat/completions", Err(NoEndpoint::Method)),
            (Method::POST, "/v1/responses", Ok(Endpoint::Responses)),
            (Method::POST, "/v1/messages", Ok(Endpoint::Messages)),
            (
                Method::POST,
                "/v1/messages/count_tokens",
                Ok(Endpoint::MessageCount),
            ),
            (
                Method::POST,
                "/v1/responses/input_tokens",
                Ok(Endpoint::ResponseCount),
            ),
            (
                Method::POST,
                "/v1beta/models/a/b:countTokens",
                Ok(Endpoint::GenerateCount),
            ),
            (Method::POST, "/model/a%3A0/invoke", Ok(Endpoint::Invoke)),
            (
                Method::POST,
                "/model/a%3A0/converse-stream",
                Ok(Endpoint::Converse),
            ),
            (
                Method::POST,
                "/anthropic/v1/messages",
                Ok(Endpoint::Messages),
            ),
            (Method::GET, "/v1/models", Ok(Endpoint::Models)),
            (Method::GET, "/v1/models/", Ok(Endpoint::Models)),
            (Method::GET, "/v1/models/a/b", Ok(Endpoint::Model("a/b"))),
            (
                Method::POST,
                "/v1beta/interactions",
                Ok(Endpoint::Interactions),
            ),
            (
                Method::POST,
                "/v1/models/a/b:generateContent",
                Ok(Endpoint::Generate),
            ),
            (
                Method::GET,
                "/v1beta/models/a:streamGenerateContent",
                Err(NoEndpoint::Method),
            ),
            (Method::POST, "/v1/embeddings", Ok(Endpoint::Embeddings)),
            (
                Method::POST,
                "/v1/models/a/b:embedContent",
                Ok(Endpoint::Embed),
            ),
            (Method::POST, "/v1/tts", Ok(Endpoint::Speech)),
            (Method::GET, "/v1/tts/voices/a", Ok(Endpoint::Voice("a"))),
            (
                Method::POST,
                "/api/v3/contents/generations/tasks",
                Ok(Endpoint::ContentTasks),
            ),
            (
                Method::GET,
                "/v1/contents/generations/tasks",
                Ok(Endpoint::ContentTaskList),
            ),
            (
                Method::DELETE,
                "/v1/contents/generations/tasks/cgt-1",
                Ok(Endpoint::ContentTaskDeletion),
            ),
            (
                Method::PUT,
                "/v1/contents/generations/tasks/cgt-1",
                Err(NoEndpoint::Method),
            ),
            (Method::GET, "/", Err(NoEndpoint::Path)),
            (Method::POST, "/v1/nothing", Err(NoEndpoint::Path)),
        ] {
            assert_eq!(find(&method, path), expected, "{method} {path}");
        }
    }
}

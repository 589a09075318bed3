//! Converts requests to a cloud to the vendor's protocol, and changes the answers as the cloud does.

use super::azure;
use super::azure_answer;
use super::issued_tokens::IssuedTokens;
use super::vertex;
use super::vertex_video;
use crate::fault::Script;
use crate::reply::Reply;
use crate::settings::Settings;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Uri};

/// A request that was converted to the vendor's protocol.
#[derive(Debug)]
pub(crate) struct ConvertedRequest {
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    pub(super) answer_change: AnswerChange,
}

/// How a cloud changes the vendor's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerChange {
    None,
    AzureChat,
    /// Converts vectors to predictions, each with the number of tokens of its text.
    Predictions(Vec<u64>),
    /// Adds the number of tokens of the text to the vector.
    Embedding(u64),
    /// Prefixes the names of operations with this path.
    Operation(String),
}

/// The result of passing a request to the clouds.
#[derive(Debug)]
pub(crate) enum Outcome {
    NotForCloud,
    Refused(Box<Reply>),
    /// A token endpoint has answered the request. The script has the faults that are still to be applied.
    TokenAnswer(Box<Reply>, Box<Script>),
    Converted(Box<ConvertedRequest>),
}

/// Answers a request for a token, or converts a request to a cloud. `script` returns the faults for token endpoints.
pub(crate) fn receive(
    parts: &Parts,
    body: &Bytes,
    settings: &Settings,
    issued_tokens: &IssuedTokens,
    number: u64,
    script: impl FnOnce() -> Script,
) -> Outcome {
    let path = parts.uri.path();
    // Signed requests to the same paths belong to another cloud (`amazon/`).
    if header(parts, "authorization").is_some_and(|value| value.starts_with("AWS4-")) {
        return Outcome::NotForCloud;
    }
    if super::issued_tokens::is_endpoint(path) {
        let script = script();
        return match issued_tokens.answer(parts, body, settings, &script, number) {
            Some(reply) => Outcome::TokenAnswer(Box::new(reply), Box::new(script)),
            None => Outcome::NotForCloud,
        };
    }
    let converted = if path.starts_with("/openai/") || path.starts_with("/anthropic/") {
        azure::convert(parts, body, settings, issued_tokens)
    } else if path.starts_with("/v1/projects/") || path.starts_with("/v1/publishers/") {
        vertex::convert(parts, body, settings, issued_tokens)
    } else {
        return Outcome::NotForCloud;
    };
    match converted {
        Ok(request) => Outcome::Converted(Box::new(request)),
        Err(reply) => Outcome::Refused(Box::new(reply)),
    }
}

impl ConvertedRequest {
    /// Changes the vendor's answer as the cloud does.
    pub(crate) fn change_answer(&self, reply: Reply) -> Reply {
        match &self.answer_change {
            AnswerChange::None => reply,
            AnswerChange::AzureChat => azure_answer::with_filters(reply),
            AnswerChange::Predictions(tokens) => vertex::predictions(reply, tokens),
            AnswerChange::Embedding(tokens) => vertex::embedding(reply, *tokens),
            AnswerChange::Operation(path) => vertex_video::named_by(reply, path),
        }
    }
}

/// A copy of the request head with another path. A placeholder in the vendor's own header replaces the credential,
/// which the cloud has already checked.
pub(super) fn rewritten_parts(parts: &Parts, path: &str, key_header: &'static str) -> Parts {
    let mut rewritten = parts.clone();
    if let Ok(uri) = path.parse::<Uri>() {
        rewritten.uri = uri;
    }
    for name in ["api-key", "authorization", "x-api-key", "x-goog-api-key"] {
        rewritten.headers.remove(name);
    }
    let value = match key_header {
        "authorization" => "Bearer sim-cloud-checked",
        _ => "sim-cloud-checked",
    };
    rewritten.headers.insert(
        HeaderName::from_static(key_header),
        HeaderValue::from_static(value),
    );
    rewritten
}

pub(super) fn bearer(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get("authorization")?.to_str().ok()?;
    value.strip_prefix("Bearer ")
}

pub(super) fn header<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name)?.to_str().ok()
}

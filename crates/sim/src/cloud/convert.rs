//! What a cloud does with a request before the vendor's protocol sees it.

use super::azure;
use super::azure_answer;
use super::grants::Grants;
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
pub(crate) struct Front {
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    pub(super) dress: Dress,
}

/// How a cloud changes the vendor's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Dress {
    None,
    AzureChat,
    /// Writes vectors as predictions, each with the number of tokens of its text.
    Predictions(Vec<u64>),
    /// Adds the number of tokens of the text to the vector.
    Embedding(u64),
    /// Puts this path before the names of operations.
    Operation(String),
}

/// What the clouds did with a request.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// The request does not belong to a cloud.
    Plain,
    /// The cloud has refused it.
    Refused(Box<Reply>),
    /// A token endpoint has answered it. The script has the faults that are left to apply.
    Token(Box<Reply>, Box<Script>),
    Passed(Box<Front>),
}

/// Answers a request for a token, and converts a request to a cloud. `script` returns the faults for token endpoints.
pub(crate) fn arrive(
    parts: &Parts,
    body: &Bytes,
    settings: &Settings,
    grants: &Grants,
    number: u64,
    script: impl FnOnce() -> Script,
) -> Arrival {
    let path = parts.uri.path();
    // Signed requests to the same paths belong to another cloud (`amazon/`).
    if header(parts, "authorization").is_some_and(|value| value.starts_with("AWS4-")) {
        return Arrival::Plain;
    }
    if super::grants::is_endpoint(path) {
        let script = script();
        return match grants.answer(parts, body, settings, &script, number) {
            Some(reply) => Arrival::Token(Box::new(reply), Box::new(script)),
            None => Arrival::Plain,
        };
    }
    let passed = if path.starts_with("/openai/") || path.starts_with("/anthropic/") {
        azure::pass(parts, body, settings, grants)
    } else if path.starts_with("/v1/projects/") || path.starts_with("/v1/publishers/") {
        vertex::pass(parts, body, settings, grants)
    } else {
        return Arrival::Plain;
    };
    match passed {
        Ok(front) => Arrival::Passed(Box::new(front)),
        Err(reply) => Arrival::Refused(Box::new(reply)),
    }
}

impl Front {
    /// Changes the vendor's answer as the cloud does.
    pub(crate) fn dress(&self, reply: Reply) -> Reply {
        match &self.dress {
            Dress::None => reply,
            Dress::AzureChat => azure_answer::with_filters(reply),
            Dress::Predictions(tokens) => vertex::predictions(reply, tokens),
            Dress::Embedding(tokens) => vertex::embedding(reply, *tokens),
            Dress::Operation(path) => vertex_video::named_by(reply, path),
        }
    }
}

/// The request with another path and the vendor's own credential header.
pub(super) fn moved(parts: &Parts, path: &str, key_header: &'static str) -> Parts {
    let mut moved = parts.clone();
    if let Ok(uri) = path.parse::<Uri>() {
        moved.uri = uri;
    }
    for name in ["api-key", "authorization", "x-api-key", "x-goog-api-key"] {
        moved.headers.remove(name);
    }
    let value = match key_header {
        "authorization" => "Bearer sim-cloud-checked",
        _ => "sim-cloud-checked",
    };
    moved.headers.insert(
        HeaderName::from_static(key_header),
        HeaderValue::from_static(value),
    );
    moved
}

/// The bearer token of a request.
pub(super) fn bearer(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get("authorization")?.to_str().ok()?;
    value.strip_prefix("Bearer ")
}

/// The value of a header.
pub(super) fn header<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name)?.to_str().ok()
}

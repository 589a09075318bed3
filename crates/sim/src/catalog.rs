//! Decides which model names exist and what the models can do, and serves `GET /v1/models`. Names that are not listed
//! are accepted too.

use crate::openai::{Refusal, authorise, failure};
use crate::protocol::IncomingCall;
use crate::reply::Reply;
use http::StatusCode;
use serde::Serialize;

const NAMES: [&str; 10] = [
    "sim-chat",
    "sim-mini",
    "sim-reason",
    "sim-open",
    "sim-fixed",
    "sim-budget",
    "sim-embed",
    "sim-paint",
    "sim-paint-a",
    "sim-paint-content",
];
const CREATED: u64 = 1_767_225_600;
/// A model whose name begins with this prefix does not exist.
const MISSING: &str = "missing";
/// A model whose name begins with this prefix reasons by default. Except in the Google protocols, it refuses sampling
/// parameters.
const REASONING: &str = "sim-reason";
/// A model whose name begins with this prefix shows its reasoning in plain text, if the protocol
/// can carry it.
const OPEN: &str = "sim-open";
const PICTURE: &str = "sim-image";
const VIDEO: &str = "sim-omni";

pub(crate) fn exists(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(MISSING)
}

pub(crate) fn reasons(name: &str) -> bool {
    name.starts_with(REASONING)
}

pub(crate) fn shows_reasoning(name: &str) -> bool {
    name.starts_with(OPEN)
}

/// Whether the model answers with pictures, if the protocol can carry them.
pub(crate) fn makes_pictures(name: &str) -> bool {
    name.starts_with(PICTURE)
}

/// Whether the model answers with videos, if the protocol can carry them.
pub(crate) fn makes_videos(name: &str) -> bool {
    name.starts_with(VIDEO)
}

#[derive(Serialize)]
struct Model<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
}

#[derive(Serialize)]
struct List {
    object: &'static str,
    data: Vec<Model<'static>>,
}

fn model(id: &str) -> Model<'_> {
    Model {
        id,
        object: "model",
        created: CREATED,
        owned_by: "sim-org-4711",
    }
}

pub(crate) fn list(call: &IncomingCall<'_>) -> Reply {
    if let Err(refusal) = authorise(&call.parts.headers, call.settings) {
        return failure(&refusal);
    }
    json(&List {
        object: "list",
        data: NAMES.into_iter().map(model).collect(),
    })
}

pub(crate) fn show(id: &str, call: &IncomingCall<'_>) -> Reply {
    if let Err(refusal) = authorise(&call.parts.headers, call.settings) {
        return failure(&refusal);
    }
    if exists(id) {
        json(&model(id))
    } else {
        failure(&Refusal::no_such_model(id))
    }
}

fn json(value: &impl Serialize) -> Reply {
    // Strings and numbers always serialize.
    Reply::json(
        StatusCode::OK,
        serde_json::to_vec(value).unwrap_or_default(),
    )
}

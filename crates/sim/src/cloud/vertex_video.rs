//! Converts the paths of Vertex AI's video requests to the vendor's own. Names of operations contain the path of the
//! model. A poll is a POST whose body names the operation.

use crate::reply::{Content, Reply};
use bytes::Bytes;
use serde_json::Value;

/// Splits a path into the publisher's part, which is the prefix of operation names, and the model with its verb.
fn split(path: &str) -> (&str, &str) {
    let path = path.trim_start_matches("/v1/");
    let at = path.find("models/").unwrap_or(path.len());
    path.split_at(at)
}

/// Returns the vendor's own path for creating a video, and the publisher's part of the path.
pub(super) fn creation(path: &str) -> (String, String) {
    let (publisher, named) = split(path);
    (format!("/v1beta/{named}"), publisher.to_owned())
}

/// Returns the vendor's own path for a poll, and the publisher's part of the path. Fails if the operation belongs to
/// another model.
pub(super) fn poll(path: &str, body: &Bytes) -> Result<(String, String), String> {
    let (publisher, named) = split(path);
    let model = named.split(':').next().unwrap_or_default();
    let request: Value = serde_json::from_slice(body).map_err(|_| "not JSON".to_owned())?;
    let name = request["operationName"].as_str().unwrap_or_default();
    let operation = name.strip_prefix(publisher).unwrap_or_default();
    let is_of_model = operation
        .strip_prefix(model)
        .is_some_and(|rest| rest.starts_with("/operations/"));
    if !is_of_model {
        return Err(format!("Invalid operation name: `{name}`."));
    }
    Ok((format!("/v1beta/{operation}"), publisher.to_owned()))
}

/// Prefixes the operation's name with the publisher's part of the path.
pub(super) fn named_by(reply: Reply, publisher: &str) -> Reply {
    let Content::Whole(bytes) = &reply.content else {
        return reply;
    };
    let Ok(mut operation) = serde_json::from_slice::<Value>(bytes) else {
        return reply;
    };
    let Some(name) = operation["name"].as_str() else {
        return reply;
    };
    operation["name"] = format!("{publisher}{name}").into();
    Reply {
        content: Content::Whole(operation.to_string().into()),
        ..reply
    }
}

//! Requests: read once, sent on with a few spans changed.

use bytes::Bytes;

use super::head::Head;
use crate::byte_queue::ByteQueue;
use crate::chat;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::generate;
use crate::interactions;
use crate::json::patch::{self, Edit};
use crate::json::write_string;
use crate::messages;
use crate::responses;

/// Reads a request and refuses what the contract refuses for its endpoint.
pub fn read_head(dialect: Dialect, body: &Bytes) -> Result<Head, Failure> {
    match dialect {
        Dialect::Chat => chat::read_head(body),
        Dialect::Responses => responses::read_head(body),
        Dialect::Messages => messages::read_head(body),
        Dialect::Interactions => interactions::read_head(body),
        // The model of a Generate Content call stands in its path: see `read_named_head`.
        Dialect::Generate => Err(Failure::not_found("This endpoint is not served.")),
    }
}

/// Reads a Generate Content request, whose path names the model and says whether the answer is a
/// stream, and refuses what the contract refuses.
pub fn read_named_head(body: &Bytes, model: &str, stream: bool) -> Result<Head, Failure> {
    generate::read_head(body, model, stream)
}

/// Writes the request for the upstream as one piece; see [`write_request_to`].
pub fn write_request(dialect: Dialect, body: &Bytes, head: &Head, upstream_model: &str) -> Bytes {
    let mut out = ByteQueue::new();
    write_request_to(dialect, body, head, upstream_model, &mut out);
    out.into_bytes()
}

/// Writes the request for the upstream: its own name for the model, usage asked for when
/// streaming, and otherwise the caller's bytes, of which large runs are not copied. `head` must
/// have been read from `body`.
pub fn write_request_to(
    _dialect: Dialect,
    body: &Bytes,
    head: &Head,
    upstream_model: &str,
    out: &mut ByteQueue,
) {
    let mut name = Vec::with_capacity(upstream_model.len() + 2);
    write_string(&mut name, upstream_model);
    let mut edits = Vec::with_capacity(head.edits.len() + 1);
    edits.extend_from_slice(&head.edits);
    if !head.model_span.is_empty() {
        edits.push(Edit::replace(head.model_span.clone(), name));
    }
    patch::apply_to(body, edits, out);
}

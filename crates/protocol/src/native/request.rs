//! Reads requests once, and writes them for the upstream with a few spans changed.

use bytes::Bytes;

use crate::byte_queue::ByteQueue;
use crate::canon::Dropped;
use crate::chat;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::generate;
use crate::interactions;
use crate::json::patch::{self, Edit};
use crate::json::write_string;
use crate::messages;
use crate::request_head::Head;
use crate::responses;

/// Reads a request, and refuses it where the API of its endpoint (`docs/api`) says so.
pub fn read_head(dialect: Dialect, body: &Bytes) -> Result<Head, Failure> {
    match dialect {
        Dialect::Chat => chat::read_head(body),
        Dialect::Responses => responses::read_head(body),
        Dialect::Messages => messages::read_head(body),
        Dialect::Interactions => interactions::read_head(body),
        // A Generate Content call names its model in the path: see `read_named_head`.
        Dialect::Generate => Err(Failure::not_found("This endpoint is not served.")),
    }
}

/// Reads a Generate Content request, and refuses it where `docs/api` says so. The path of the request
/// names the model and says whether the client asks for a stream.
pub fn read_named_head(body: &Bytes, model: &str, stream: bool) -> Result<Head, Failure> {
    generate::read_head(body, model, stream)
}

/// The request without any `stream_options`, ours or the client's, for an upstream that refuses them. The
/// client's options are added to `dropped`.
pub fn without_stream_options(
    body: &Bytes,
    head: &Head,
    dropped: &mut Dropped,
) -> Result<(Bytes, Head), Failure> {
    if head.stream_options.is_none() {
        return Ok((body.clone(), head.without_usage_request()));
    }
    let body = chat::cut_stream_options(body, dropped)?;
    // The positions of all edits have changed, so the head is read again.
    let head = chat::read_head(&body)?;
    Ok((body, head.without_usage_request()))
}

/// Writes the request for the upstream as one buffer; see [`write_request_to`].
pub fn write_request(body: &Bytes, head: &Head, upstream_model: &str) -> Bytes {
    let mut out = ByteQueue::new();
    write_request_to(body, head, upstream_model, &mut out);
    out.into_bytes()
}

/// Writes the request for the upstream: with the upstream's name for the model, and with the edits of
/// `head`, such as a request for usage. All other bytes are the client's, and large runs of them are
/// not copied. `head` must have been read from `body`.
pub fn write_request_to(body: &Bytes, head: &Head, upstream_model: &str, out: &mut ByteQueue) {
    let mut name = Vec::with_capacity(upstream_model.len() + 2);
    write_string(&mut name, upstream_model);
    let mut edits = Vec::with_capacity(head.edits.len() + 1);
    edits.extend_from_slice(&head.edits);
    if !head.model_span.is_empty() {
        edits.push(Edit::replace(head.model_span.clone(), name));
    }
    patch::apply_to(body, edits, out);
}

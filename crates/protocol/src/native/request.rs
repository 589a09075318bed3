//! Requests: read once, sent on with a few spans changed.

use std::ops::Range;

use bytes::Bytes;

use crate::byte_queue::ByteQueue;
use crate::chat;
use crate::count::InputCount;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::generate;
use crate::interactions;
use crate::json::patch::{self, Edit};
use crate::json::write_string;
use crate::messages;
use crate::responses;
use crate::tool::Tools;

/// What a request says that we must know, and where it says it.
#[derive(Debug, Clone)]
pub struct Head {
    /// The public model id.
    pub model: String,
    /// Whether the answer is a stream.
    pub stream: bool,
    /// Whether the caller asked for the usage chunk.
    pub include_usage: bool,
    /// The output limit of one choice; unknown when absent, zero or negative.
    pub output_tokens_max: Option<u64>,
    /// Answers asked for, at least one.
    pub choices: u32,
    /// Input tokens, as counted.
    pub input: InputCount,
    /// Whether input is to be written to a cache that is kept for an hour; Messages alone has it.
    pub long_cache: bool,
    /// Built-in tools that the request offers.
    pub tools: Tools,
    /// Sampling members set to something else than their default, which models of fixed sampling
    /// refuse on Messages; other dialects leave it empty.
    pub sampling: Vec<&'static str>,
    /// Empty where the body does not name the model.
    pub(crate) model_span: Range<usize>,
    /// What the contract demands to be changed, the model aside.
    pub(crate) edits: Vec<Edit>,
}

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

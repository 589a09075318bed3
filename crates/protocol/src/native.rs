//! The native path: caller and upstream speak the same dialect, and only spans are changed.

use std::sync::Arc;

use bytes::Bytes;

use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::joined::Joined;
use crate::usage::Usage;

/// What a request says that we must know, and where it says it.
#[derive(Debug, Clone)]
pub struct Head {
    /// The public model id.
    pub model: String,
    /// Whether the answer is a stream.
    pub stream: bool,
    /// Whether the caller asked for the usage chunk.
    pub include_usage: bool,
    /// The output limit of one choice.
    pub output_tokens_max: Option<u64>,
    /// Answers asked for.
    pub choices: u32,
    /// Input tokens, estimated.
    pub input_tokens: u64,
}

/// What takes the place of the upstream's identity in an answer.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Our response id.
    pub id: Box<str>,
    /// The public model id.
    pub model: Arc<str>,
}

/// A whole answer, rewritten.
#[derive(Debug)]
pub struct Answer {
    /// The bytes for the caller.
    pub pieces: Joined,
    /// What the upstream reported.
    pub usage: Option<Usage>,
    /// Output tokens as we count them.
    pub output_tokens_counted: u64,
}

/// The upstream's answer is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// An error where an answer should be.
    #[error("the upstream sent an error: {0}")]
    Failure(Failure),
    /// Not JSON, or not of this protocol.
    #[error("the upstream's answer does not parse: {0}")]
    Malformed(String),
    /// An event above the limit.
    #[error("an event is larger than {0} bytes")]
    TooLarge(usize),
    /// The stream ended without its end mark.
    #[error("the stream ended without its end mark")]
    Unfinished,
}

/// What a stream has shown so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The last usage report.
    pub usage: Option<Usage>,
    /// Whether any output went by.
    pub content: bool,
    /// Output tokens counted over all deltas.
    pub output_tokens_counted: u64,
    /// Whether the end mark went by.
    pub ended: bool,
}

/// Reads a request and refuses what the contract refuses.
pub fn read_head(_dialect: Dialect, _body: &Bytes) -> Result<Head, Failure> {
    Err(Failure::internal())
}

/// Writes the request for the upstream.
pub fn write_request(
    _dialect: Dialect,
    body: &Bytes,
    _head: &Head,
    _upstream_model: &str,
) -> Bytes {
    body.clone()
}

/// Rewrites a whole answer.
pub fn rewrite_answer(
    _dialect: Dialect,
    body: Bytes,
    _identity: &Identity,
) -> Result<Answer, Broken> {
    let mut pieces = Joined::new();
    pieces.push(body);
    Ok(Answer {
        pieces,
        usage: None,
        output_tokens_counted: 0,
    })
}

/// Reads an upstream's refusal.
pub fn read_failure(
    _dialect: Dialect,
    _status: u16,
    _body: &[u8],
    _upstream_model: &str,
    _public_model: &str,
) -> Failure {
    Failure::upstream_error()
}

/// The last event of a stream that failed.
pub fn terminal_failure(dialect: Dialect, failure: &Failure, request_id: &str) -> Bytes {
    failure.write(dialect.family(), request_id).into()
}

/// Rewrites a stream as it comes.
#[derive(Debug)]
pub struct Rewriter {
    seen: Seen,
}

impl Rewriter {
    /// A rewriter for one stream.
    pub fn new(_dialect: Dialect, _identity: Identity, _include_usage: bool) -> Self {
        Self {
            seen: Seen::default(),
        }
    }

    /// Takes what one read brought and puts out the complete frames in it.
    pub fn push(&mut self, chunk: Bytes, out: &mut Joined) -> Result<(), Broken> {
        out.push(chunk);
        Ok(())
    }

    /// The upstream has closed the stream.
    pub fn end(&mut self) -> Result<(), Broken> {
        Ok(())
    }

    /// What has gone by.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }
}

//! Whole answers from upstreams of the caller's own dialect, although a stream was asked for.

use std::sync::Arc;

use bytes::Bytes;

use super::codecs::read_request;
use super::transcoder::Transcoder;
use super::weight::weigh_request;
use crate::canon::{Echo, Request};
use crate::dialect::Dialect;
use crate::native::{Identity, Rewriter};

/// The largest request that is kept.
const REQUEST_BYTES_MAX: usize = 256 << 10;
/// The largest request that is read again, by the memory that its common form takes.
const WEIGHT_BYTES_MAX: usize = 1 << 20;

/// What it takes to tell a whole answer as a stream, beside the answer.
#[derive(Debug)]
pub struct WholeAnswer {
    /// The caller's request, parts of which some dialects repeat; empty if it is too large.
    request: Bytes,
    /// Input tokens as counted at admission.
    input_tokens: u64,
}

impl WholeAnswer {
    /// Keeps the request until the first byte of the answer, which may take minutes. A large one is
    /// not kept: it would count towards the memory of its caller for all that time.
    pub fn new(request: &Bytes, input_tokens: u64) -> Self {
        let is_small = request.len() <= REQUEST_BYTES_MAX;
        Self {
            request: if is_small {
                request.clone()
            } else {
                Bytes::new()
            },
            input_tokens,
        }
    }

    /// Tells the answer in events of its own dialect.
    #[cold]
    pub(super) fn transcoder(&self, rewriter: &Rewriter) -> Transcoder {
        let (dialect, identity) = (rewriter.dialect(), rewriter.identity());
        let Identity { id, model, created } = identity.clone();
        let echo = Echo {
            id,
            model,
            created,
            input_tokens: self.input_tokens,
            request: Arc::new(self.repeated(dialect, rewriter.shows_usage())),
        };
        Transcoder::new(dialect, dialect, echo).watching_tools()
    }

    /// What the answer repeats of the request. A large request is not worth its memory here.
    fn repeated(&self, dialect: Dialect, shows_usage: bool) -> Request {
        let unread = Request {
            include_usage: shows_usage,
            ..Request::default()
        };
        let is_light = |weight| weight <= WEIGHT_BYTES_MAX;
        if !weigh_request(&self.request).is_ok_and(is_light) {
            return unread;
        }
        let request = read_request(dialect, &self.request, true).unwrap_or(unread);
        request.without_conversation()
    }
}

//! Arguments of the request and answer writers, besides the request or the answer itself.

use std::sync::Arc;

use super::request::Request;
use crate::profile::{OutputLimit, Profile};

/// The upstream that a request is written for.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The model's name at the upstream.
    pub upstream_model: &'a str,
    /// The public id. Opaque values of other models are not sent.
    pub public_model: &'a str,
    /// The capabilities of the model.
    pub profile: &'a Profile,
    /// The name of the output limit in chat requests, from the model's profile or else the channel.
    pub output_limit: OutputLimit,
    /// Whether a chat stream may be asked for its usage (`stream_options`).
    pub asks_for_usage: bool,
}

/// The values that the writer of an answer needs besides the answer.
#[derive(Debug, Clone)]
pub struct AnswerContext {
    /// The gateway's response id.
    pub id: Box<str>,
    /// The public model id.
    pub model: Arc<str>,
    /// When the call arrived, in Unix seconds.
    pub created: i64,
    /// Input tokens as counted at admission, for dialects that report them at the start.
    pub input_tokens: u64,
    /// The request, because some dialects repeat parts of it in their answers.
    pub request: Arc<Request>,
}

//! What a codec must know beside the call itself.

use std::sync::Arc;

use super::request::Request;
use crate::profile::{OutputLimit, Profile};

/// Where a request goes.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The upstream's own name of the model.
    pub upstream_model: &'a str,
    /// The public id: opaque values of other models are not sent.
    pub public_model: &'a str,
    /// What the model can do.
    pub profile: &'a Profile,
    /// How the channel calls the output limit of a chat request.
    pub output_limit: OutputLimit,
}

/// What the writer of an answer says besides the answer.
#[derive(Debug, Clone)]
pub struct Echo {
    /// Our response id.
    pub id: Box<str>,
    /// The public model id.
    pub model: Arc<str>,
    /// Unix seconds.
    pub created: i64,
    /// Input tokens as counted at admission, for dialects that tell them at the start.
    pub input_tokens: u64,
    /// The request, parts of which some dialects repeat in their answers.
    pub request: Arc<Request>,
}

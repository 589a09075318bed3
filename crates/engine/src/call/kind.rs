//! What differs between the works that calls ask for; their life (`life.rs`) is one.

use std::future::Future;

use bytes::Bytes;
use http::HeaderValue;
use protocol::native::{self, Broken};
use protocol::{Failure, Translator};
use upstream::{Endpoint, UpstreamRequest};

use crate::billing::estimate::Estimate;
use crate::call::route_plan::RoutePlan;
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::settings::Settings;

/// A request that was read and not refused: what it becomes for an upstream, and what the
/// upstream's answer becomes for the caller.
pub(crate) trait CallKind: Send + Sync + 'static {
    /// Whether the answer is a stream.
    fn is_streamed(&self) -> bool;

    /// Encodes the request as this route takes it, and fetches what the upstream cannot fetch itself.
    fn encode_for(
        &mut self,
        engine: &Engine,
        model: &Model,
        route: &Route,
    ) -> impl Future<Output = Result<Encoded, Failure>> + Send;

    /// The caller's form of a whole answer of `spoken`.
    fn translate_answer(&self, spoken: Endpoint, answer: Bytes) -> Result<native::Answer, Broken>;

    /// What turns a stream of `spoken` into the caller's.
    fn stream_translator(&self, model: &Model, spoken: Endpoint) -> Result<Translator, Failure>;

    /// How the caller's protocol treats streams.
    fn stream_policy(&self) -> StreamPolicy;

    /// Whether an answer of this type can be one.
    fn accepts(&self, _content_type: Option<&HeaderValue>) -> bool {
        true
    }

    /// The type of the stream that the caller gets, when the upstream's has this one.
    fn content_type(&self, _upstream: Option<&HeaderValue>) -> HeaderValue {
        HeaderValue::from_static("text/event-stream")
    }

    /// The largest whole answer.
    fn answer_bytes_max(&self, settings: &Settings) -> usize {
        settings.answer_bytes_max
    }
}

/// A request in the words of one route.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) call: UpstreamRequest,
    /// The value of `x-dropped-params`.
    pub(crate) dropped: Option<String>,
}

/// How a protocol's clients take streams that are silent or fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamPolicy {
    /// A sign of life that they survive; empty where there is none.
    pub(crate) keep_alive: &'static [u8],
    /// Whether a clean close would mean success to them.
    pub(crate) aborts_on_failure: bool,
}

/// A call that may ask for money.
pub(crate) struct Prepared<W> {
    pub(crate) kind: W,
    pub(crate) plan: RoutePlan,
    pub(crate) estimate: Estimate,
}

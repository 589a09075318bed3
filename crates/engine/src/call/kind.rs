//! What differs between kinds of calls. Their life (`run.rs`) is the same.

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

/// A request that was read and not refused: how it is encoded for an upstream, and how the upstream's answer is
/// translated for the client.
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

    /// Translates a whole answer of the endpoint that was called.
    fn translate_answer(&self, spoken: Endpoint, answer: Bytes) -> Result<native::Answer, Broken>;

    /// The translator for a stream of the endpoint that was called.
    fn stream_translator(&self, model: &Model, spoken: Endpoint) -> Result<Translator, Failure>;

    /// How clients of this protocol treat streams.
    fn stream_policy(&self) -> StreamPolicy;

    /// Whether a response of this content type can be an answer.
    fn accepts(&self, _content_type: Option<&HeaderValue>) -> bool {
        true
    }

    /// The content type of the client's stream, given the upstream's.
    fn content_type(&self, _upstream: Option<&HeaderValue>) -> HeaderValue {
        HeaderValue::from_static("text/event-stream")
    }

    /// The size limit of a whole answer.
    fn answer_bytes_max(&self, settings: &Settings) -> usize {
        settings.answer_bytes_max
    }
}

/// A request as one route takes it.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) call: UpstreamRequest,
    /// The value of `x-dropped-params`.
    pub(crate) dropped: Option<String>,
}

/// How a protocol's clients treat streams that are silent or fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamPolicy {
    /// A keep-alive that its clients ignore; empty if there is none.
    pub(crate) keep_alive: &'static [u8],
    /// Whether its clients take a clean close for success, so that a failed stream must be aborted.
    pub(crate) aborts_on_failure: bool,
}

/// A call that can be admitted.
pub(crate) struct Prepared<W> {
    pub(crate) kind: W,
    pub(crate) plan: RoutePlan,
    pub(crate) estimate: Estimate,
}

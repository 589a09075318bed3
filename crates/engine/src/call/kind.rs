//! The trait for what differs between kinds of calls. `run.rs` runs all of them.

use std::collections::VecDeque;
use std::future::Future;

use bytes::Bytes;
use http::HeaderValue;
use protocol::native::{self, UnusableAnswer};
use protocol::{Failure, Translator};
use store::WalletId;
use upstream::{Endpoint, UpstreamRequest, hash_bytes};

use crate::billing::estimate::Estimate;
use crate::call::route_plan::{CallTraits, RoutePlan};
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
    fn translate_answer(
        &self,
        spoken: Endpoint,
        answer: Bytes,
    ) -> Result<native::Answer, UnusableAnswer>;

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

    /// A hash of the beginning of the prompt, which later calls of the same conversation share. Only computed for models
    /// whose calls stick to routes.
    fn prompt_key(&self) -> Option<u64> {
        None
    }

    /// The size limit of a whole answer.
    fn answer_bytes_max(&self, settings: &Settings) -> usize {
        settings.answer_bytes_max
    }
}

/// A request, encoded for one route.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) call: UpstreamRequest,
    /// The value of `x-dropped-params`.
    pub(crate) dropped: Option<String>,
}

/// How a protocol's clients treat streams that are silent or fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamPolicy {
    /// A keep-alive that clients ignore; empty if the protocol has none.
    pub(crate) keep_alive: &'static [u8],
    /// Whether clients take a clean close for success. A failed stream must then be aborted.
    pub(crate) aborts_on_failure: bool,
}

/// A call that can be admitted.
pub(crate) struct Prepared<W> {
    pub(crate) kind: W,
    pub(crate) plan: RoutePlan,
    pub(crate) estimate: Estimate,
    /// The same call to other models, in the order in which they are tried if this one has no route left.
    pub(crate) fallbacks: VecDeque<Prepared<W>>,
    /// Why the model that the caller named cannot answer, if this is a fallback.
    pub(crate) of_named_model: Option<Failure>,
}

impl<K: CallKind> Prepared<K> {
    /// Orders the routes by the model's routing settings, which go beyond priorities and weights.
    pub(crate) fn arrange_routes(&mut self, wallet: WalletId) {
        let routing = &self.plan.model().routing;
        if routing.is_plain() {
            return;
        }
        // The key includes the wallet: prompt caches belong to an account, and different wallets need not share one.
        let sticky_key = routing.sticky.then(|| self.kind.prompt_key()).flatten();
        let sticky_key = sticky_key.map(|key| hash_bytes(key, wallet.to_string().as_bytes()));
        self.plan.arrange(&CallTraits {
            meter: &self.estimate.reserved,
            is_streamed: self.kind.is_streamed(),
            sticky_key,
        });
    }
}

//! The trait for the differences between kinds of calls. `run.rs` runs calls of all kinds.

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
use crate::caller_urls::Funds;
use crate::catalog::{Model, Route};
use crate::engine::Engine;
use crate::settings::Settings;

/// A request that has been read and accepted. It can be encoded for an upstream, and the upstream's answer can be
/// translated for the client.
pub(crate) trait CallKind: Send + Sync + 'static {
    fn is_streamed(&self) -> bool;

    /// Encodes the request for a route, and fetches the media that the upstream cannot fetch itself.
    fn encode_for(
        &mut self,
        engine: &Engine,
        model: &Model,
        route: &Route,
        funds: Funds,
    ) -> impl Future<Output = Result<Encoded, Failure>> + Send;

    /// Translates a whole answer from `upstream_endpoint`.
    fn translate_answer(
        &self,
        upstream_endpoint: Endpoint,
        answer: Bytes,
    ) -> Result<native::Answer, UnusableAnswer>;

    /// Creates the translator for a stream from `upstream_endpoint`.
    fn stream_translator(
        &self,
        model: &Model,
        upstream_endpoint: Endpoint,
    ) -> Result<Translator, Failure>;

    fn stream_policy(&self) -> StreamPolicy;

    /// Whether a response of this content type can be an answer.
    fn accepts(&self, _content_type: Option<&HeaderValue>) -> bool {
        true
    }

    /// The content type of the stream to the client, given the content type of the upstream.
    fn content_type(&self, _upstream: Option<&HeaderValue>) -> HeaderValue {
        HeaderValue::from_static("text/event-stream")
    }

    /// A hash of the beginning of the prompt, which later calls of the same conversation share. It is computed only for
    /// models with sticky routing.
    fn prompt_key(&self) -> Option<u64> {
        None
    }

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

/// How clients of a protocol handle streams that are silent or fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamPolicy {
    /// A keep-alive that clients ignore; empty if the protocol has none.
    pub(crate) keep_alive: &'static [u8],
    /// Whether clients mistake a clean close for success. A failed stream must then be aborted.
    pub(crate) aborts_on_failure: bool,
}

/// A call that is ready for admission. It is large, so functions pass it on in a box.
pub(crate) struct Prepared<W> {
    pub(crate) kind: W,
    pub(crate) plan: RoutePlan,
    pub(crate) estimate: Estimate,
    /// The same call to fallback models, in the order in which they are tried when this model has no route left.
    pub(crate) fallbacks: VecDeque<Box<Prepared<W>>>,
    /// The failure of the model that the caller named, if this is a fallback.
    pub(crate) of_named_model: Option<Failure>,
}

impl<K: CallKind> Prepared<K> {
    /// Orders the routes by the model's routing settings, such as cost, latency and stickiness.
    pub(crate) fn arrange_routes(&mut self, wallet: WalletId) {
        let routing = &self.plan.model().routing;
        if routing.is_plain() {
            return;
        }
        // The key includes the wallet, because calls of different wallets need not share a route and its prompt cache.
        let sticky_key = routing.sticky.then(|| self.kind.prompt_key()).flatten();
        let sticky_key = sticky_key.map(|key| hash_bytes(key, wallet.to_string().as_bytes()));
        self.plan.arrange(&CallTraits {
            meter: &self.estimate.reserved,
            is_streamed: self.kind.is_streamed(),
            sticky_key,
        });
    }
}

//! A request to an upstream.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use protocol::messages::HostedMessages;

use crate::endpoint::Endpoint;
use crate::spool::SpooledPart;

/// The header in which clients of Messages request beta features.
const BETA: &str = "anthropic-beta";

/// The beta features that a client of Messages requests in its headers.
pub fn betas(headers: &HeaderMap) -> Vec<&str> {
    let values = headers.get_all(BETA).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(',')).map(str::trim);
    names.filter(|name| !name.is_empty()).collect()
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub struct UpstreamRequest {
    pub endpoint: Endpoint,
    /// The upstream's name for the model. It is part of the path of some endpoints.
    pub upstream_model: Arc<str>,
    /// The id of one item of a collection, such as a task.
    pub item: Option<Box<str>>,
    pub content_type: HeaderValue,
    /// The body in pieces. They are sent without being joined.
    pub body: Vec<Bytes>,
    /// A part of the body that is stored in a file.
    pub spooled: Option<SpooledPart>,
    /// Headers of the client's request. Only those on this crate's allow-list are forwarded (K5).
    pub extra: HeaderMap,
    /// The `traceparent` header, if the channel sends it.
    pub traceparent: Option<HeaderValue>,
}

impl UpstreamRequest {
    /// A request with a JSON body.
    pub fn json(endpoint: Endpoint, upstream_model: impl Into<Arc<str>>, body: Vec<Bytes>) -> Self {
        Self {
            endpoint,
            upstream_model: upstream_model.into(),
            item: None,
            content_type: HeaderValue::from_static("application/json"),
            body,
            spooled: None,
            extra: HeaderMap::new(),
            traceparent: None,
        }
    }

    /// Converts a Messages request to the form of a cloud that hosts the model.
    pub(crate) fn hosted_by(&self, form: &HostedMessages) -> Self {
        let keeps_model = matches!(self.endpoint, Endpoint::TokenCount(_));
        let mut extra = self.extra.clone();
        let mut betas = Vec::new();
        if form.betas_in_body {
            extra.remove(BETA);
            betas = self::betas(&self.extra);
        }
        Self {
            endpoint: self.endpoint,
            upstream_model: Arc::clone(&self.upstream_model),
            item: self.item.clone(),
            content_type: self.content_type.clone(),
            body: vec![form.write(&self.body, keeps_model, &betas)],
            spooled: None,
            extra,
            traceparent: self.traceparent.clone(),
        }
    }

    /// Converts a request for the state of an operation to the form of clouds whose body names the operation and whose
    /// path names the model.
    pub(crate) fn fetching_operation(&self) -> Self {
        let body = serde_json::json!({ "operationName": self.item });
        let body = vec![Bytes::from(body.to_string())];
        Self::json(
            Endpoint::FetchOperation,
            Arc::clone(&self.upstream_model),
            body,
        )
    }

    /// The length of the body in bytes.
    pub(crate) fn length(&self) -> u64 {
        let pieces: usize = self.body.iter().map(Bytes::len).sum();
        let spooled = self.spooled.as_ref().map_or(0, SpooledPart::length);
        u64::try_from(pieces)
            .unwrap_or(u64::MAX)
            .saturating_add(spooled)
    }
}

//! A request to an upstream.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use crate::endpoint::Endpoint;
use crate::spool::SpooledPart;

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
        }
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

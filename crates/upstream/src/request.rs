//! A request to an upstream.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use crate::endpoint::Endpoint;
use crate::spool::SpooledPart;

/// A call that is ready to go out.
#[derive(Debug)]
pub struct UpstreamRequest {
    pub endpoint: Endpoint,
    /// The upstream's name for the model, which stands in the path of some endpoints.
    pub upstream_model: Arc<str>,
    /// The one thing of a list that is asked for, such as a task.
    pub item: Option<Box<str>>,
    pub content_type: HeaderValue,
    /// The body in order; a large one is not copied together.
    pub body: Vec<Bytes>,
    /// A part of the body that stands in a file.
    pub spooled: Option<SpooledPart>,
    /// Headers of the caller's that the upstream should see. Those that stand on the list
    /// of this crate go on, all others stay here (K5).
    pub extra: HeaderMap,
}

impl UpstreamRequest {
    /// A JSON call.
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

    /// Bytes of the body.
    pub(crate) fn length(&self) -> u64 {
        let pieces: usize = self.body.iter().map(Bytes::len).sum();
        let spooled = self.spooled.as_ref().map_or(0, SpooledPart::length);
        u64::try_from(pieces)
            .unwrap_or(u64::MAX)
            .saturating_add(spooled)
    }
}

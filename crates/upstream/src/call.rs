//! One call: what goes out and what comes back.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use protocol::Dialect;

use crate::body::Body;

/// What of the upstream is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint<'a> {
    /// Text generation in a dialect. The model's name and whether it streams stand in the
    /// path of some.
    Text {
        dialect: Dialect,
        upstream_model: &'a str,
        stream: bool,
    },
}

impl Endpoint<'_> {
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Self::Text { dialect, .. } => dialect,
        }
    }
}

/// A call that is ready to go out.
#[derive(Debug)]
pub struct Outgoing<'a> {
    pub endpoint: Endpoint<'a>,
    pub content_type: HeaderValue,
    /// The body in order; a large one is not copied together.
    pub body: Vec<Bytes>,
    /// Headers of the caller's that the upstream should see. Those that stand on the list
    /// of this crate go on, all others stay here (reliability.md, K5).
    pub extra: HeaderMap,
}

impl<'a> Outgoing<'a> {
    /// A JSON call.
    pub fn json(endpoint: Endpoint<'a>, body: Vec<Bytes>) -> Self {
        Self {
            endpoint,
            content_type: HeaderValue::from_static("application/json"),
            body,
            extra: HeaderMap::new(),
        }
    }

    /// Bytes of the body.
    pub(crate) fn length(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }
}

/// An answer's head, as much of it as may be known above, and its body.
#[derive(Debug)]
pub struct Incoming {
    pub status: u16,
    pub content_type: Option<HeaderValue>,
    /// How long the upstream asks us to stay away.
    pub retry_after: Option<Duration>,
    pub body: Body,
}

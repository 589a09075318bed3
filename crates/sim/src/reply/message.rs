//! Defines a reply before faults are applied: status, headers and content.

use bytes::Bytes;
use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderName, HeaderValue, StatusCode};
use std::fmt;

pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// An answer or an error of a protocol.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    Whole(Bytes),
    /// Events that are created while they are sent, so that a long stream needs little memory.
    Events(Box<dyn Iterator<Item = Event> + Send>),
}

/// One event of a stream, in wire format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    pub(crate) bytes: Bytes,
}

/// The kind of an event, on which delays and faults depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// Carries a part of the answer.
    Content,
    Usage,
    /// Opens or closes a part of the answer, or ends the stream.
    Frame,
}

impl Reply {
    pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self::whole(status, JSON, body)
    }

    pub(crate) fn whole(
        status: StatusCode,
        content_type: &'static str,
        body: impl Into<Bytes>,
    ) -> Self {
        Self {
            status,
            content_type,
            headers: Vec::new(),
            content: Content::Whole(body.into()),
        }
    }

    /// Adds the headers of a scripted status: `retry-after` if given, `location` for a redirection.
    pub(crate) fn with_status_headers(mut self, retry_after_s: Option<u32>) -> Self {
        if let Some(seconds) = retry_after_s {
            self.headers.push((RETRY_AFTER, seconds.into()));
        }
        if self.status.is_redirection() {
            let elsewhere = HeaderValue::from_static("https://api-2.sim-upstream.example/v1/");
            self.headers.push((LOCATION, elsewhere));
        }
        self
    }

    pub(crate) fn events(events: impl Iterator<Item = Event> + Send + 'static) -> Self {
        Self::events_as(EVENT_STREAM, events)
    }

    /// A stream with another content type.
    pub(crate) fn events_as(
        content_type: &'static str,
        events: impl Iterator<Item = Event> + Send + 'static,
    ) -> Self {
        Self {
            status: StatusCode::OK,
            content_type,
            headers: Vec::new(),
            content: Content::Events(Box::new(events)),
        }
    }
}

/// The error page of a proxy in front of the vendor.
pub(crate) fn html_page() -> Reply {
    Reply::whole(
        StatusCode::OK,
        "text/html; charset=utf-8",
        "<html><head><title>edge-7.sim-upstream.example</title></head>\
         <body><h1>We will be right back</h1></body></html>\n",
    )
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => write!(f, "Whole({} bytes)", bytes.len()),
            Self::Events(_) => f.write_str("Events"),
        }
    }
}

//! Times.

use std::time::Duration;

use crate::config::document::Section;

/// `[timeouts]`: every wait has an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    pub upstream_connect: Duration,
    /// Long, since a model may think in silence.
    pub upstream_first_byte: Duration,
    pub upstream_idle: Duration,
    pub upstream_total: Duration,
    /// One picture that a caller names by URL.
    pub image_fetch: Duration,
    /// One result that we keep.
    pub media_fetch: Duration,
    /// One file of a result that a caller reads.
    pub media_read: Duration,
    pub client_header: Duration,
    pub client_body_idle: Duration,
    pub client_body_total: Duration,
    pub client_keep_alive: Duration,
    /// How long a reader may take no byte while data waits.
    pub client_write_idle: Duration,
    /// How often a quiet HTTP/2 connection is pinged, and how long the answer may take.
    pub client_ping: Duration,
    pub client_ping_answer: Duration,
    /// How long an upstream is read for its usage after the caller has gone.
    pub client_gone_drain: Duration,
    /// How long we are not ready, and still accept, before a shutdown.
    pub shutdown_notice: Duration,
    /// How long open work may go on in a shutdown.
    pub shutdown_drain: Duration,
    /// The silence on a stream after which a keep-alive is sent.
    pub stream_keep_alive: Duration,
    /// How often both sides of a socket are pinged.
    pub socket_ping: Duration,
    /// The silence after which a side of a socket is gone.
    pub socket_dead: Duration,
    pub socket_session: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            upstream_connect: Duration::from_secs(5),
            upstream_first_byte: Duration::from_secs(600),
            upstream_idle: Duration::from_secs(300),
            upstream_total: Duration::from_secs(30 * 60),
            image_fetch: Duration::from_secs(30),
            media_fetch: Duration::from_secs(15 * 60),
            media_read: Duration::from_secs(30 * 60),
            client_header: Duration::from_secs(10),
            client_body_idle: Duration::from_secs(30),
            client_body_total: Duration::from_secs(300),
            client_keep_alive: Duration::from_secs(75),
            client_write_idle: Duration::from_secs(60),
            client_ping: Duration::from_secs(30),
            client_ping_answer: Duration::from_secs(20),
            client_gone_drain: Duration::from_secs(5),
            shutdown_notice: Duration::from_secs(5),
            shutdown_drain: Duration::from_secs(30),
            stream_keep_alive: Duration::from_secs(15),
            socket_ping: Duration::from_secs(20),
            socket_dead: Duration::from_secs(60),
            socket_session: Duration::from_secs(2 * 3600),
        }
    }
}

impl Timeouts {
    pub(crate) fn read(mut section: Section<'_, '_, '_>) -> Self {
        let mut out = Self::default();
        section.millis("upstream_connect_ms", &mut out.upstream_connect);
        section.millis("upstream_first_byte_ms", &mut out.upstream_first_byte);
        section.millis("upstream_idle_ms", &mut out.upstream_idle);
        section.millis("upstream_total_ms", &mut out.upstream_total);
        section.millis("image_fetch_ms", &mut out.image_fetch);
        section.millis("media_fetch_ms", &mut out.media_fetch);
        section.millis("media_read_ms", &mut out.media_read);
        section.millis("client_header_ms", &mut out.client_header);
        section.millis("client_body_idle_ms", &mut out.client_body_idle);
        section.millis("client_body_total_ms", &mut out.client_body_total);
        section.millis("client_keep_alive_ms", &mut out.client_keep_alive);
        section.millis("client_write_idle_ms", &mut out.client_write_idle);
        section.millis("client_ping_ms", &mut out.client_ping);
        section.millis("client_ping_answer_ms", &mut out.client_ping_answer);
        // 0 is a choice here: cancel at once, tell nobody, wait for nothing.
        section.millis_or_zero("drain_ms", &mut out.client_gone_drain);
        if section.has("drain_ms") && section.has("client_gone_drain_ms") {
            section.report("drain_ms is another name of client_gone_drain_ms; keep one");
        }
        section.millis_or_zero("client_gone_drain_ms", &mut out.client_gone_drain);
        section.millis_or_zero("shutdown_notice_ms", &mut out.shutdown_notice);
        section.millis_or_zero("shutdown_drain_ms", &mut out.shutdown_drain);
        section.millis("stream_keep_alive_ms", &mut out.stream_keep_alive);
        section.millis("socket_ping_ms", &mut out.socket_ping);
        section.millis("socket_dead_ms", &mut out.socket_dead);
        section.millis("socket_session_ms", &mut out.socket_session);
        section.end();
        out
    }
}

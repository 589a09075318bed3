//! `[timeouts]`: the time limits of calls, connections and sessions.

use std::time::Duration;

use crate::config::document::setting::{millis, millis_or_zero, settings};
use crate::config::document::{Section, value};

settings! {
    /// Time limits.
    pub struct Timeouts in "timeouts" {
        /// Connecting to an upstream.
        pub upstream_connect: Duration = millis("upstream_connect_ms", 5_000),
        /// From a request until the upstream begins to answer. Long, because a model may think in silence.
        pub upstream_first_byte: Duration = millis("upstream_first_byte_ms", 600_000),
        /// Between two pieces of an upstream's answer.
        pub upstream_idle: Duration = millis("upstream_idle_ms", 300_000),
        /// From a request until the end of the upstream's answer.
        pub upstream_total: Duration = millis("upstream_total_ms", 1_800_000),
        /// The fetch of an image that a caller names by URL, from the DNS lookup to the last byte.
        pub image_fetch: Duration = millis("image_fetch_ms", 30_000),
        /// The fetch of a result that we keep, from the DNS lookup to the last byte.
        pub media_fetch: Duration = millis("media_fetch_ms", 900_000),
        /// The download of a kept file by a caller. A slower caller must request the rest as a range.
        pub media_read: Duration = millis("media_read_ms", 1_800_000),
        /// Until all headers of a request have arrived.
        pub client_header: Duration = millis("client_header_ms", 10_000),
        /// Between two pieces of a request body.
        pub client_body_idle: Duration = millis("client_body_idle_ms", 30_000),
        /// Until the end of a request body.
        pub client_body_total: Duration = millis("client_body_total_ms", 300_000),
        /// Between two requests on a connection.
        pub client_keep_alive: Duration = millis("client_keep_alive_ms", 75_000),
        /// How long a caller may read nothing while data is ready for it.
        pub client_write_idle: Duration = millis("client_write_idle_ms", 60_000),
        /// How often an idle HTTP/2 connection is pinged.
        pub client_ping: Duration = millis("client_ping_ms", 30_000),
        /// How long the answer to such a ping may take.
        pub client_ping_answer: Duration = millis("client_ping_answer_ms", 20_000),
        /// How long an upstream is read for its usage after the caller has left; 0 cancels the upstream call at once.
        /// `drain_ms` means the same.
        pub client_gone_drain: Duration = millis_or_zero("client_gone_drain_ms", 5_000),
        /// Shutdown: how long the node reports that it is not ready, and still accepts requests.
        pub shutdown_notice: Duration = millis_or_zero("shutdown_notice_ms", 5_000),
        /// Shutdown: how long open calls may then continue.
        pub shutdown_drain: Duration = millis_or_zero("shutdown_drain_ms", 30_000),
        /// The time without data on a stream after which the caller gets a keep-alive.
        pub stream_keep_alive: Duration = millis("stream_keep_alive_ms", 15_000),
        /// WebSocket: how often both sides are pinged.
        pub socket_ping: Duration = millis("socket_ping_ms", 20_000),
        /// WebSocket: the time without data after which a side counts as disconnected.
        pub socket_dead: Duration = millis("socket_dead_ms", 60_000),
        /// WebSocket: how long a session may last.
        pub socket_session: Duration = millis("socket_session_ms", 7_200_000),
    }
}

impl Timeouts {
    /// Reads the table. Also accepts `drain_ms`, the second name of `client_gone_drain_ms`.
    pub(crate) fn read_checked(section: &mut Section<'_, '_, '_>) -> Self {
        let mut timeouts = Self::read(section);
        if section.has("drain_ms") && section.has("client_gone_drain_ms") {
            section.report("drain_ms is another name of client_gone_drain_ms; keep one");
        }
        if let Some(drain) = section.value("drain_ms", value::millis_or_zero) {
            timeouts.client_gone_drain = drain;
        }
        timeouts
    }
}

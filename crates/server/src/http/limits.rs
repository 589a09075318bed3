//! The limits of the public listener, taken from the configuration.

use std::net::IpAddr;
use std::time::Duration;

use upstream::Network;

use super::connection::WaitLimits;
use crate::config::Config;

/// The size of hyper's read buffer. hyper refuses larger request heads before they reach us.
pub(crate) const READ_BUFFER_BYTES: usize = 128 << 10;
pub(crate) const HEADERS_MAX: usize = 100;

/// Limits of connections, request heads and bodies.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) target_bytes_max: usize,
    /// One header, name and value.
    pub(crate) header_bytes_max: usize,
    pub(crate) headers_bytes_max: usize,
    pub(crate) body_text_bytes: usize,
    pub(crate) body_embeddings_bytes: usize,
    pub(crate) body_image_bytes: usize,
    pub(crate) body_tts_bytes: usize,
    pub(crate) body_stt_bytes: usize,
    pub(crate) body_video_bytes: usize,
    body_idle: Duration,
    body_total: Duration,
    pub(crate) waits: WaitLimits,
    /// How often an idle HTTP/2 connection is pinged, and how long the answer may take.
    pub(crate) ping: Duration,
    pub(crate) ping_answer: Duration,
    pub(crate) connections_max: usize,
    connections_per_address_max: usize,
    /// Whether to serve paths that only SDKs use.
    pub(crate) sdk_aliases: bool,
    /// Whether the page for callers is served.
    pub(crate) page: bool,
    /// Whether that page lists the models to visitors without a key.
    pub(crate) page_models: bool,
    /// Origins whose pages may read answers in a browser.
    pub(crate) cors_origins: Vec<String>,
    /// Peers that are exempt from limits per address.
    trusted_proxies: Vec<Network>,
    /// Peers whose `traceparent` is honoured.
    trusted_callers: Vec<Network>,
}

/// The limits of one request body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    pub(crate) bytes_max: usize,
    /// The maximum time between two pieces.
    pub(crate) idle: Duration,
    pub(crate) total: Duration,
}

impl Limits {
    pub(crate) fn of(config: &Config) -> Self {
        let Config {
            limits, timeouts, ..
        } = config;
        Self {
            target_bytes_max: limits.target_bytes,
            headers_bytes_max: limits.header_bytes,
            header_bytes_max: limits.header_one_bytes,
            body_text_bytes: limits.body_text_bytes,
            body_embeddings_bytes: limits.body_embeddings_bytes,
            body_image_bytes: limits.body_image_bytes,
            body_tts_bytes: limits.body_tts_bytes,
            body_stt_bytes: limits.body_stt_bytes,
            body_video_bytes: limits.body_video_bytes,
            body_idle: timeouts.client_body_idle,
            body_total: timeouts.client_body_total,
            waits: WaitLimits {
                head: timeouts.client_header,
                keep_alive: timeouts.client_keep_alive,
                write: timeouts.client_write_idle,
            },
            ping: timeouts.client_ping,
            ping_answer: timeouts.client_ping_answer,
            connections_max: limits.connections,
            connections_per_address_max: limits.connections_per_address,
            sdk_aliases: config.server.sdk_aliases,
            page: config.server.page,
            page_models: config.server.page_models,
            cors_origins: config.server.cors_origins.clone(),
            trusted_proxies: config.server.trusted_proxies.clone(),
            trusted_callers: config.telemetry.trusted_callers.clone(),
        }
    }

    /// The limits of a body of at most this size.
    pub(crate) fn body(&self, bytes_max: usize) -> BodyLimits {
        BodyLimits {
            bytes_max,
            idle: self.body_idle,
            total: self.body_total,
        }
    }

    /// The address, if limits per address apply to it. They do not apply to a trusted proxy, which forwards the
    /// requests of many clients.
    pub(crate) fn limited_address(&self, address: IpAddr) -> Option<IpAddr> {
        let mut trusted = self.trusted_proxies.iter();
        let is_trusted = trusted.any(|network| network.contains(address));
        (!is_trusted).then_some(address)
    }

    /// Whether the `traceparent` of calls from this address is honoured.
    pub(crate) fn continues_traces(&self, address: IpAddr) -> bool {
        let mut trusted = self.trusted_callers.iter();
        trusted.any(|network| network.contains(address))
    }

    /// The maximum number of connections from this address.
    pub(crate) fn connections_max_of(&self, address: IpAddr) -> usize {
        match self.limited_address(address) {
            Some(_) => self.connections_per_address_max,
            None => usize::MAX,
        }
    }
}

//! The limits of the public listener.

use std::net::IpAddr;
use std::time::Duration;

use upstream::Network;

use super::connection::WaitLimits;

/// The size of hyper's read buffer. hyper refuses larger request heads before they reach us.
pub(crate) const READ_BUFFER_BYTES: usize = 128 << 10;
pub(crate) const HEADERS_MAX: usize = 100;

/// Limits of connections, request heads and bodies, and the other settings of the public listener.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The target of a request: path and query.
    pub target_bytes_max: usize,
    /// One header, name and value.
    pub header_bytes_max: usize,
    /// All headers of a request.
    pub headers_bytes_max: usize,
    /// The body of a text call.
    pub body_text_bytes: usize,
    /// The body of a call for embeddings.
    pub body_embeddings_bytes: usize,
    /// The body of a call for images.
    pub body_image_bytes: usize,
    /// The body of a call for speech.
    pub body_tts_bytes: usize,
    /// The audio of a call for a transcript. The body may be larger, because its form has other fields.
    pub body_stt_bytes: usize,
    /// The body of a call that creates a video task.
    pub body_video_bytes: usize,
    /// The maximum time between two pieces of a body.
    pub body_idle: Duration,
    /// The maximum time for all of a body.
    pub body_total: Duration,
    /// How long a connection may wait for its client.
    pub waits: WaitLimits,
    /// How often an idle HTTP/2 connection is pinged.
    pub ping: Duration,
    /// How long the answer to a ping may take.
    pub ping_answer: Duration,
    /// Connections of the node.
    pub connections_max: usize,
    /// Connections of one IPv4 address, or of one /64 prefix of IPv6 addresses.
    pub connections_per_address_max: usize,
    /// Whether to serve paths that only SDKs use.
    pub sdk_aliases: bool,
    /// Whether the page for callers is served.
    pub page: bool,
    /// Whether that page lists the models to visitors without a key.
    pub page_models: bool,
    /// Origins whose pages may read answers in a browser.
    pub cors_origins: Vec<String>,
    /// Peers that are exempt from limits per address.
    pub trusted_proxies: Vec<Network>,
    /// Peers whose `traceparent` is honoured.
    pub trusted_callers: Vec<Network>,
}

/// How many connections may be open when one more arrives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    pub(crate) node_max: usize,
    /// Of the client's network. `None` for a trusted proxy, whose connections are not counted among those of its
    /// network.
    pub(crate) network_max: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    pub(crate) bytes_max: usize,
    /// The maximum time between two pieces.
    pub(crate) idle: Duration,
    pub(crate) total: Duration,
}

impl Limits {
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

    pub(crate) fn connections_from(&self, address: IpAddr) -> ConnectionLimits {
        ConnectionLimits {
            node_max: self.connections_max,
            network_max: self
                .limited_address(address)
                .map(|_| self.connections_per_address_max),
        }
    }
}

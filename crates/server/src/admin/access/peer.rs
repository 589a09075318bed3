//! The address that a request comes from.

use std::net::{IpAddr, SocketAddr};

use upstream::client_network;

/// The remote address of a connection. It is in the extensions of the connection's requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

impl Peer {
    /// The network for which wrong guesses and connections are counted.
    pub(in crate::admin) fn network(self) -> IpAddr {
        client_network(self.0.ip())
    }
}

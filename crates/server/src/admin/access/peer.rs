//! The address that a request comes from.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The remote address of a connection. It is in the extensions of the connection's requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

impl Peer {
    /// The network for which wrong guesses and connections are counted: an IPv4 address, or the /64 prefix of an IPv6
    /// subscriber.
    pub(in crate::admin) fn network(self) -> IpAddr {
        match self.0.ip().to_canonical() {
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            ip @ IpAddr::V4(_) => ip,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_subscriber_is_one_network() {
        for (address, network) in [
            ("127.0.0.1:5", "127.0.0.1"),
            ("[::ffff:10.0.0.1]:5", "10.0.0.1"),
            ("[2001:db8:1:2:3:4:5:6]:5", "2001:db8:1:2::"),
        ] {
            let peer = Peer(address.parse().unwrap());
            assert_eq!(peer.network(), network.parse::<IpAddr>().unwrap());
        }
    }
}

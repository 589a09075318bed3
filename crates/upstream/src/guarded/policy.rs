//! Decides which addresses may be called on behalf of others (A3).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::error::UrlRefusal;
use crate::network::{NAT64, Network, inner_v4};

/// Ranges that are not public: private, shared, loopback, link-local, documentation, multicast,
/// reserved.
const V4_REFUSED: [Network; 18] = [
    Network::v4([0, 0, 0, 0], 8),
    Network::v4([10, 0, 0, 0], 8),
    Network::v4([100, 64, 0, 0], 10),
    Network::v4([127, 0, 0, 0], 8),
    Network::v4([169, 254, 0, 0], 16),
    Network::v4([172, 16, 0, 0], 12),
    Network::v4([192, 0, 0, 0], 24),
    Network::v4([192, 0, 2, 0], 24),
    Network::v4([192, 31, 196, 0], 24),
    Network::v4([192, 52, 193, 0], 24),
    Network::v4([192, 88, 99, 0], 24),
    Network::v4([192, 168, 0, 0], 16),
    Network::v4([192, 175, 48, 0], 24),
    Network::v4([198, 18, 0, 0], 15),
    Network::v4([198, 51, 100, 0], 24),
    Network::v4([203, 0, 113, 0], 24),
    Network::v4([224, 0, 0, 0], 4),
    Network::v4([240, 0, 0, 0], 4),
];

/// The public range of IPv6. Everything else is refused.
const V6_PUBLIC: Network = Network::v6([0x2000, 0, 0, 0], 3);
/// Ranges inside `V6_PUBLIC` that are not public.
const V6_REFUSED: [Network; 5] = [
    Network::v6([0x2001, 0, 0, 0], 23),
    Network::v6([0x2001, 0xdb8, 0, 0], 32),
    Network::v6([0x2002, 0, 0, 0], 16),
    Network::v6([0x2620, 0x4f, 0x8000, 0], 48),
    Network::v6([0x3fff, 0, 0, 0], 20),
];

/// Metadata services, which issue credentials of the machine. One of them has a public address.
const METADATA: [IpAddr; 8] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// The operator's exceptions, and our own addresses, which are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Ranges that may be called although they are not public. Tests use this to allow loopback.
    pub allow: Vec<Network>,
    /// Whether this network reaches IPv4 through NAT64 (`64:ff9b::/96`).
    pub nat64: bool,
    /// Hosts of our own systems, such as the object storage: lower-case names, or addresses.
    pub own_hosts: Vec<String>,
    /// The addresses of our own listeners. A channel that leads to one of them would call the
    /// gateway itself.
    pub listeners: Vec<SocketAddr>,
}

impl AddressPolicy {
    /// Refuses all addresses if one of them is refused: a name with both public and private
    /// addresses is an attack.
    pub fn check_addresses(&self, addresses: &[SocketAddr]) -> Result<(), UrlRefusal> {
        addresses
            .iter()
            .try_for_each(|it| self.check_address(it.ip()))
    }

    /// Whether an address may be called.
    pub fn check_address(&self, address: IpAddr) -> Result<(), UrlRefusal> {
        let fine = !METADATA.contains(&address)
            && match address {
                IpAddr::V4(v4) => self.allows(address) || is_public_v4(v4),
                IpAddr::V6(v6) => self.allows_v6(v6),
            };
        if fine {
            Ok(())
        } else {
            Err(UrlRefusal::Address)
        }
    }

    /// Refuses a channel whose host is one of our own systems.
    pub(crate) fn check_host(&self, host: &str) -> Result<(), UrlRefusal> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_own = |own: &String| own.eq_ignore_ascii_case(host);
        if self.own_hosts.iter().any(is_own) {
            return Err(UrlRefusal::Address);
        }
        Ok(())
    }

    /// Refuses a channel's connection that has reached one of our own listeners.
    pub(crate) fn check_connected(
        &self,
        peer: SocketAddr,
        local: IpAddr,
    ) -> Result<(), UrlRefusal> {
        if self.listeners.iter().any(|own| is_ours(*own, peer, local)) {
            return Err(UrlRefusal::Loop);
        }
        Ok(())
    }

    fn allows_v6(&self, v6: Ipv6Addr) -> bool {
        let address = IpAddr::V6(v6);
        // No legitimate name resolves to an IPv4-mapped address, so `allow` cannot permit one.
        if v6.to_ipv4_mapped().is_some() {
            return false;
        }
        if NAT64.contains(address) {
            return self.nat64 && self.check_address(inner_v4(v6).into()).is_ok();
        }
        let is_refused = || V6_REFUSED.iter().any(|range| range.contains(address));
        self.allows(address) || (V6_PUBLIC.contains(address) && !is_refused())
    }

    fn allows(&self, address: IpAddr) -> bool {
        self.allow.iter().any(|range| range.contains(address))
    }
}

/// Whether a connection has reached one of our listeners. A listener on all interfaces can be
/// reached by any address of this machine. In that case both ends of the connection have the same
/// address, or the peer is loopback.
pub(super) fn is_ours(own: SocketAddr, peer: SocketAddr, local: IpAddr) -> bool {
    let is_here = peer.ip() == local || peer.ip().is_loopback();
    own.port() == peer.port() && (own.ip() == peer.ip() || (own.ip().is_unspecified() && is_here))
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let address = IpAddr::V4(address);
    !V4_REFUSED.iter().any(|range| range.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_fine(policy: &AddressPolicy, address: &str) -> bool {
        policy.check_address(address.parse().unwrap()).is_ok()
    }

    /// Four addresses for each refused range: the one before it, its first, its last, and the one
    /// after it.
    const REFUSED: &str = "
        -               0.0.0.0        0.255.255.255     1.0.0.0
        9.255.255.255   10.0.0.0       10.255.255.255    11.0.0.0
        100.63.255.255  100.64.0.0     100.127.255.255   100.128.0.0
        126.255.255.255 127.0.0.0      127.255.255.255   128.0.0.0
        169.253.255.255 169.254.0.0    169.254.255.255   169.255.0.0
        172.15.255.255  172.16.0.0     172.31.255.255    172.32.0.0
        191.255.255.255 192.0.0.0      192.0.0.255       192.0.1.0
        192.0.1.255     192.0.2.0      192.0.2.255       192.0.3.0
        192.31.195.255  192.31.196.0   192.31.196.255    192.31.197.0
        192.52.192.255  192.52.193.0   192.52.193.255    192.52.194.0
        192.88.98.255   192.88.99.0    192.88.99.255     192.88.100.0
        192.167.255.255 192.168.0.0    192.168.255.255   192.169.0.0
        192.175.47.255  192.175.48.0   192.175.48.255    192.175.49.0
        198.17.255.255  198.18.0.0     198.19.255.255    198.20.0.0
        198.51.99.255   198.51.100.0   198.51.100.255    198.51.101.0
        203.0.112.255   203.0.113.0    203.0.113.255     203.0.114.0
        223.255.255.255 224.0.0.0      255.255.255.255   -
        -               ::             1fff:ffff::       2000::
        2000:ffff::     2001::         2001:1ff:ffff::   2001:200::
        2001:db7:ffff:: 2001:db8::     2001:db8:ffff::   2001:db9::
        2001:ffff::     2002::         2002:ffff::       2003::
        2620:4f:7fff::  2620:4f:8000:: 2620:4f:8000:f::  2620:4f:8001::
        3ffe:ffff::     3fff::         3fff:fff::        3fff:1000::
        3fff:ffff::     4000::         ffff:ffff::       -";

    #[test]
    fn ranges_are_refused_from_end_to_end_and_no_further() {
        let policy = AddressPolicy::default();
        for row in REFUSED.lines().skip(1) {
            for (address, fine) in row.split_whitespace().zip([true, false, false, true]) {
                assert!(
                    address == "-" || is_fine(&policy, address) == fine,
                    "{address}"
                );
            }
        }
    }

    #[test]
    fn well_known_addresses_are_judged_by_name() {
        let policy = AddressPolicy::default();
        for refused in [
            "::1",
            "100::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            // IPv4 inside IPv6: compatible, mapped, translated, local NAT64, NAT64, 6to4, Teredo.
            "::8.8.8.8",
            "::ffff:8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:0:8.8.8.8",
            "64:ff9b:1::808:808",
            "64:ff9b::8.8.8.8",
            "2002:7f00:1::",
            "2001:0:7f00:1::",
            "168.63.129.16",
            "100.100.100.200",
        ] {
            assert!(!is_fine(&policy, refused), "{refused}");
        }
        for public in ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450::1"] {
            assert!(is_fine(&policy, public), "{public}");
        }
    }

    #[test]
    fn an_operator_can_allow_all_addresses_except_metadata_services() {
        let all = ["0.0.0.0/0", "::/0"].map(|it| it.parse().unwrap());
        let policy = AddressPolicy {
            allow: all.to_vec(),
            nat64: true,
            ..AddressPolicy::default()
        };
        for address in METADATA {
            assert_eq!(
                policy.check_address(address),
                Err(UrlRefusal::Address),
                "{address}"
            );
        }
        for refused in [
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
        ] {
            assert!(!is_fine(&policy, refused), "{refused}");
        }
        for allowed in ["127.0.0.1", "10.0.0.1", "::1", "fe80::1", "64:ff9b::7f00:1"] {
            assert!(is_fine(&policy, allowed), "{allowed}");
        }

        let loopback = AddressPolicy {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
            ..AddressPolicy::default()
        };
        assert!(is_fine(&loopback, "127.0.0.1"));
        for refused in ["10.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert!(!is_fine(&loopback, refused), "{refused}");
        }
    }

    #[test]
    fn the_inner_address_of_a_nat64_address_is_checked() {
        let policy = AddressPolicy {
            nat64: true,
            ..AddressPolicy::default()
        };
        assert!(is_fine(&policy, "64:ff9b::8.8.8.8"));
        for refused in [
            "64:ff9b::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::8.8.8.8",
        ] {
            assert!(!is_fine(&policy, refused), "{refused}");
        }
    }

    #[test]
    fn one_bad_address_spoils_a_name() {
        let policy = AddressPolicy::default();
        let good: SocketAddr = "8.8.8.8:80".parse().unwrap();
        let bad: SocketAddr = "10.0.0.1:80".parse().unwrap();
        assert_eq!(policy.check_addresses(&[good, good]), Ok(()));
        for mixed in [[good, bad], [bad, good]] {
            assert_eq!(policy.check_addresses(&mixed), Err(UrlRefusal::Address));
        }
    }
}

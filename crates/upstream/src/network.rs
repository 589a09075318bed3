//! Ranges of IP addresses, such as `10.0.0.0/8`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// All addresses that share a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    /// A range of IPv4 addresses. The bits after the prefix must be zero.
    pub(crate) const fn v4(octets: [u8; 4], prefix: u32) -> Self {
        let [a, b, c, d] = octets;
        Self {
            address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            prefix,
        }
    }

    /// A range of IPv6 addresses, given by its first four groups. The bits after the prefix must be
    /// zero.
    pub(crate) const fn v6(groups: [u16; 4], prefix: u32) -> Self {
        let [a, b, c, d] = groups;
        Self {
            address: IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)),
            prefix,
        }
    }

    /// Whether the range contains the address. An IPv4-mapped IPv6 address (`::ffff:…`), which a
    /// dual-stack socket reports for an IPv4 peer, counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                let mask = u32::MAX.checked_shl(32 - self.prefix).unwrap_or(0);
                ours.to_bits() == theirs.to_bits() & mask
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let mask = u128::MAX.checked_shl(128 - self.prefix).unwrap_or(0);
                ours.to_bits() == theirs.to_bits() & mask
            }
            _ => false,
        }
    }
}

/// The range through which a NAT64 translator reaches IPv4 addresses.
pub(crate) const NAT64: Network = Network::v6([0x64, 0xff9b, 0, 0], 96);

/// The IPv4 address in the last bits of an IPv6 address.
pub(crate) fn inner_v4(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

/// The network for which connections, readers and wrong guesses of one client are counted: an IPv4 address, or the /64
/// prefix of an IPv6 subscriber, who has all of its addresses. A client behind a NAT64 translator counts by its IPv4
/// address, because the translator's prefix is the same for all of them.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if NAT64.contains(address) => inner_v4(v6).into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || "must be a range of addresses, such as 10.0.0.0/8 or ::1".to_owned();
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| shape())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().map_err(|_| shape())?,
            None => bits,
        };
        if prefix > bits {
            return Err(format!("has more than {bits} bits behind the slash"));
        }
        let network = Self { address, prefix };
        if !network.contains(address) {
            return Err("has bits set behind its prefix; write the first address".to_owned());
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_own_addresses_only() {
        for (network, inside, outside) in [
            ("127.0.0.0/8", "127.9.9.9", "128.0.0.1"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("10.0.0.0/8", "::ffff:10.9.9.9", "::ffff:11.0.0.1"),
            ("::/0", "ff::1", "1.2.3.4"),
            ("2001:db8::/32", "2001:db8:1::1", "2001:db9::1"),
            ("::1", "::1", "::2"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(
                network.contains(inside.parse().unwrap()),
                "{network} {inside}"
            );
            assert!(
                !network.contains(outside.parse().unwrap()),
                "{network} {outside}"
            );
        }
    }

    #[test]
    fn an_ipv6_subscriber_is_one_network() {
        for (address, network) in [
            ("127.0.0.1", "127.0.0.1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("64:ff9b::192.0.2.1", "192.0.2.1"),
            ("64:ff9b::192.0.2.2", "192.0.2.2"),
            ("64:ff9b::1:192.0.2.2", "64:ff9b::"),
            ("64:ff9b:1::192.0.2.2", "64:ff9b:1::"),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(client_network(address), network.parse::<IpAddr>().unwrap());
        }
    }

    #[test]
    fn texts_that_are_not_networks_are_refused() {
        for text in [
            "",
            "here",
            "10.0.0.0/",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.1/8",
            "10/8",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}

//! Who sends a request, for the limits per client. Addresses are kept in memory only: they are neither stored nor logged.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The address at the other end of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Peer(IpAddr);

impl Peer {
    /// An IPv4-mapped IPv6 address becomes the IPv4 address.
    pub fn new(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }

    pub const fn address(self) -> IpAddr {
        self.0
    }

    /// Whether the address is loopback, private or link-local. Such peers are proxies or colleagues.
    pub const fn is_local(self) -> bool {
        match self.0 {
            IpAddr::V4(address) => {
                let [first, second, ..] = address.octets();
                // 100.64.0.0/10 is shared by a provider's customers, and by overlay networks.
                let is_shared = first == 100 && second & 0b1100_0000 == 64;
                address.is_loopback() || address.is_private() || address.is_link_local() || is_shared
            }
            IpAddr::V6(address) => {
                address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
            }
        }
    }
}

/// One client: an IPv4 address, or an IPv6 /64, which is the least that a provider assigns to one customer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Client(IpAddr);

impl Client {
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => Self(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()),
            address @ IpAddr::V4(_) => Self(address),
        }
    }
}

/// Without the address, so that it cannot get into the log.
impl fmt::Debug for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Peer(…)")
    }
}

/// Without the address, so that it cannot get into the log.
impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Client(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> Client {
        Client::of(address.parse().unwrap())
    }

    #[test]
    fn a_client_is_one_ipv4_address_or_one_ipv6_network() {
        assert!(client("203.0.113.7") != client("203.0.113.8"));
        assert!(client("203.0.113.7") == client("::ffff:203.0.113.7"));
        assert!(client("2001:db8:1:2::1") == client("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert!(client("2001:db8:1:2::1") != client("2001:db8:1:3::1"));
    }

    #[test]
    fn loopback_private_and_link_local_peers_are_local() {
        for local in [
            "127.0.0.1",
            "127.255.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.1.1",
            "::1",
            "fc00::1",
            "fdff::1",
            "fe80::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(Peer::new(local.parse().unwrap()).is_local(), "{local}");
        }
        for public in [
            "203.0.113.7",
            "8.8.8.8",
            "172.32.0.1",
            "100.63.255.255",
            "100.128.0.0",
            "192.169.0.1",
            "2001:db8::1",
            "fec0::1",
            "::ffff:8.8.8.8",
        ] {
            assert!(!Peer::new(public.parse().unwrap()).is_local(), "{public}");
        }
    }

    #[test]
    fn addresses_cannot_be_logged() {
        let text = format!("{:?} {:?}", Peer::new("203.0.113.7".parse().unwrap()), client("203.0.113.7"));
        assert!(!text.contains("203"), "{text}");
    }
}

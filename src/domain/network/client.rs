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
            IpAddr::V6(address) => Self(first_of_prefix(address, 64)),
            address @ IpAddr::V4(_) => Self(address),
        }
    }

    /// The networks of the client that are limited, from the client itself to the widest. A provider may assign a /56 or a /48 to
    /// one customer, or to several.
    pub fn networks(self) -> impl Iterator<Item = Network> {
        let prefixes: &[_] = match self.0 {
            IpAddr::V4(_) => &[(32, 1)],
            IpAddr::V6(_) => &[(64, 1), (56, 4), WIDEST_V6],
        };
        prefixes.iter().map(move |&prefix| self.network(prefix))
    }

    pub fn widest_network(self) -> Network {
        self.network(WIDEST_V6)
    }

    fn network(self, (bits, share): (u32, u32)) -> Network {
        match self.0 {
            IpAddr::V6(address) => Network { first: first_of_prefix(address, bits), share },
            first @ IpAddr::V4(_) => Network { first, share: 1 },
        }
    }
}

/// Bits of the prefix, and the share of it.
const WIDEST_V6: (u32, u32) = (48, 16);

fn first_of_prefix(address: Ipv6Addr, bits: u32) -> IpAddr {
    Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - bits))).into()
}

/// Addresses that are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    first: IpAddr,
    /// How many times as much as one client they get together.
    pub share: u32,
}

/// Without the address, so that it cannot get into the log.
impl fmt::Debug for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Peer(…)")
    }
}

/// Without the address, so that it cannot get into the log.
impl fmt::Debug for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Network(…)")
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
    fn an_ipv6_client_shares_a_56_and_a_48_with_others() {
        let shared = |other: &str| {
            let others: Vec<_> = client(other).networks().collect();
            let shared = client("2001:db8:1:200::1").networks().filter(|network| others.contains(network));
            shared.map(|network| network.share).collect::<Vec<_>>()
        };
        assert_eq!(shared("2001:db8:1:200::2"), [1, 4, 16]);
        assert_eq!(shared("2001:db8:1:2ff::1"), [4, 16]);
        assert_eq!(shared("2001:db8:1:300::1"), [16]);
        assert!(shared("2001:db8:2:200::1").is_empty());
        assert_eq!(client("203.0.113.7").networks().count(), 1);
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
        let client = client("203.0.113.7");
        let text = format!("{:?} {client:?} {:?}", Peer::new("203.0.113.7".parse().unwrap()), client.widest_network());
        assert!(!text.contains("203"), "{text}");
    }
}

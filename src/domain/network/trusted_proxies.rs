//! Who sends a request, for the limits per client: the peer, or whom a trusted proxy names in a header. Addresses are kept in memory only: they are neither stored nor logged.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;

use crate::domain::limits::MAX_HEADER_NAME_BYTES;
use crate::domain::parse::Invalid;

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProxies {
    header: String,
    networks: Vec<IpNet>,
}

impl TrustedProxies {
    pub const fn new(header: String, networks: Vec<IpNet>) -> Self {
        Self { header, networks }
    }

    /// The name of the header that names the client, in lower case.
    pub fn header(&self) -> &str {
        &self.header
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address.to_canonical()))
    }

    /// Returns the client that the header names, if it names one. `entries` are those of the header from the last to
    /// the first, and `None` is an entry that is not an address.
    ///
    /// Each proxy appends the address that connected to it. So the last entry is true, and the one before it is true if
    /// the last one is a trusted proxy, and so on. Everything before that may have been made up by the client.
    pub fn client(&self, entries: impl IntoIterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
        let mut client = None;
        for entry in entries {
            let Some(address) = entry else { break };
            client = Some(address);
            if !self.contains(address) {
                break;
            }
        }
        client
    }
}

/// Returns the name in lower case.
pub fn parse_header_name(text: &str) -> Result<String, Invalid> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let name = text.trim();
    if name.is_empty() || name.len() > MAX_HEADER_NAME_BYTES || !name.bytes().all(is_token) {
        return Err(Invalid::new("it is not the name of a header such as x-forwarded-for"));
    }
    Ok(name.to_ascii_lowercase())
}

/// Parses networks in CIDR notation, separated by commas. A single address is a network of one.
pub fn parse_networks(text: &str) -> Result<Vec<IpNet>, Invalid> {
    let parse = |text: &str| {
        let network = text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        network.ok_or_else(|| Invalid::new(format!("`{text}` is not a network such as 10.0.0.0/8 or 2001:db8::/32")))
    };
    let networks: Vec<_> =
        text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(parse).collect::<Result<_, _>>()?;
    if networks.is_empty() {
        return Err(Invalid::new("it names no network, such as 10.0.0.0/8 or 2001:db8::/32"));
    }
    Ok(networks)
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

    fn named_client(entries: &[Option<&str>]) -> Option<String> {
        let networks = parse_networks("10.0.0.0/8, 2001:db8:aaaa::/48").unwrap();
        let proxies = TrustedProxies::new("x-forwarded-for".to_owned(), networks);
        let entries = entries.iter().rev().map(|entry| entry.map(|text| text.parse().unwrap()));
        proxies.client(entries).map(|address| address.to_string())
    }

    #[test]
    fn the_client_is_the_rightmost_address_that_is_not_a_trusted_proxy() {
        let proxy = Some("10.0.0.2");
        for (entries, expected) in [
            (&[][..], None),
            (&[Some("203.0.113.7")], Some("203.0.113.7")),
            (&[Some("198.51.100.1"), Some("203.0.113.7")], Some("203.0.113.7")),
            (&[Some("198.51.100.1"), Some("203.0.113.7"), proxy], Some("203.0.113.7")),
            (&[Some("203.0.113.7"), Some("2001:db8:aaaa::1"), proxy], Some("203.0.113.7")),
            (&[Some("203.0.113.7"), Some("::ffff:10.1.1.1")], Some("203.0.113.7")),
            // All are trusted: the leftmost.
            (&[Some("10.0.0.1"), proxy], Some("10.0.0.1")),
            // An entry that is no address ends the walk, and the one to its right counts.
            (&[Some("203.0.113.7"), None, proxy], proxy),
            (&[Some("203.0.113.7"), None], None),
        ] {
            assert_eq!(named_client(entries).as_deref(), expected, "{entries:?}");
        }
    }

    #[test]
    fn networks_are_parsed_and_others_are_named() {
        assert_eq!(parse_networks("10.0.0.0/8,::1").unwrap().len(), 2);
        assert!(parse_networks("10.0.0.0/8, 10.0.0.0/33").unwrap_err().to_string().starts_with("`10.0.0.0/33` is not"));
        assert!(parse_networks("proxy.example").unwrap_err().to_string().starts_with("`proxy.example` is not"));
        assert!(parse_networks(" , ").unwrap_err().to_string().starts_with("it names no network"));
    }

    #[test]
    fn header_names_are_compared_in_lower_case() {
        assert_eq!(parse_header_name("X-Forwarded-For").unwrap(), "x-forwarded-for");
        for wrong in ["", "x forwarded", "x-forwarded-for:", "ä"] {
            assert!(parse_header_name(wrong).is_err(), "{wrong}");
        }
    }
}

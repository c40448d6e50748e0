//! The proxies that are trusted to name the client of a request in a header.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::domain::limits::MAX_HEADER_NAME_BYTES;
use crate::domain::parse::Invalid;

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

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

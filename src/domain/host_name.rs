//! Host names, as in `Host` headers and certificates.

use std::fmt;

use url::Host;

/// A domain name in its ASCII form, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host name such as www.troupe.example")]
pub struct InvalidHostName(String);

impl HostName {
    pub fn parse(text: &str) -> Result<Self, InvalidHostName> {
        match Host::parse(text) {
            Ok(Host::Domain(name)) if name.contains('.') && !name.ends_with('.') && !name.contains('*') => {
                Ok(Self(name))
            }
            _ => Err(InvalidHostName(text.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether an authority such as `WWW.troupe.example:443` names this host, at any port.
    pub fn is_host_of(&self, authority: &str) -> bool {
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case(&self.0)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_domain_names_are_host_names() {
        assert_eq!(HostName::parse("WWW.Troupe.example").unwrap().as_str(), "www.troupe.example");
        assert_eq!(HostName::parse("b\u{fc}cher.example").unwrap().as_str(), "xn--bcher-kva.example");
        for text in ["", "www", "127.0.0.1", "[::1]", "a.example:1", "*.troupe.example", "a b.example", "a.example."] {
            assert!(HostName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_authority_names_a_host_in_any_case_and_at_any_port() {
        let host = HostName::parse("www.troupe.example").unwrap();
        for authority in
            ["www.troupe.example", "WWW.Troupe.Example:8443", "www.troupe.example.", "www.troupe.example.:1"]
        {
            assert!(host.is_host_of(authority), "{authority}");
        }
        for authority in ["troupe.example", "xwww.troupe.example", "www.troupe.example.evil", ""] {
            assert!(!host.is_host_of(authority), "{authority}");
        }
    }
}

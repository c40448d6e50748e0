//! Host names, as in `Host` headers and certificates, and URLs that name several hosts.

use url::Host;

use crate::domain::parse::{Invalid, text_types};

/// A domain name in its ASCII form, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

text_types!(HostName);

impl HostName {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        match Host::parse(text) {
            Ok(Host::Domain(name)) if name.contains('.') && !name.ends_with('.') && !name.contains('*') => {
                Ok(Self(name))
            }
            _ => Err(Invalid::new(format!("`{text}` is not a host name such as www.troupe.example"))),
        }
    }

    /// Whether an authority such as `WWW.troupe.example:443` names this host, at any port.
    pub fn is_host_of(&self, authority: &str) -> bool {
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case(&self.0)
    }
}

/// A URL, split at its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostList<'a> {
    /// Scheme, user and password.
    before: &'a str,
    hosts: &'a str,
    /// Path and parameters.
    after: &'a str,
}

impl<'a> HostList<'a> {
    /// Returns `None` if the text has no host part.
    pub fn split(url: &'a str) -> Option<Self> {
        let start = url.find("://")? + "://".len();
        let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |length| start + length);
        // A password may contain an @ that is not escaped.
        let start = url[start..end].rfind('@').map_or(start, |at| start + at + 1);
        Some(Self { before: &url[..start], hosts: &url[start..end], after: &url[end..] })
    }

    /// One URL for each host, in the order of the list.
    pub fn urls(self) -> impl Iterator<Item = String> {
        self.hosts.split(',').map(move |host| format!("{}{host}{}", self.before, self.after))
    }

    /// Whether there are several hosts.
    pub fn is_several(self) -> bool {
        self.hosts.contains(',')
    }

    /// Whether a comma is at the beginning, at the end, or next to another one.
    pub fn has_gap(self) -> bool {
        self.is_several() && self.hosts.split(',').any(str::is_empty)
    }

    /// This URL with the hosts of `other`.
    pub fn with_hosts_of(self, other: HostList<'_>) -> String {
        format!("{}{}{}", self.before, other.hosts, self.after)
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

    fn urls(url: &str) -> Vec<String> {
        HostList::split(url).unwrap().urls().collect()
    }

    #[test]
    fn each_host_gets_the_rest_of_the_url() {
        assert_eq!(
            urls("postgres://me:a,b@c@[::1]:5432,db.example:5433,10.0.0.3/site?sslmode=require,x"),
            [
                "postgres://me:a,b@c@[::1]:5432/site?sslmode=require,x",
                "postgres://me:a,b@c@db.example:5433/site?sslmode=require,x",
                "postgres://me:a,b@c@10.0.0.3/site?sslmode=require,x",
            ]
        );
        for one in ["postgres://me@db.example/site", "postgres:///site?host=/run", "postgres://db.example?a=b,c"] {
            assert_eq!(urls(one), [one]);
            assert!(!HostList::split(one).unwrap().is_several(), "{one}");
        }
        assert_eq!(HostList::split("db.example"), None);
    }

    #[test]
    fn a_gap_in_the_list_is_noticed() {
        for url in ["postgres://a,,b/site", "postgres://,a/site", "postgres://me@a,/site"] {
            assert!(HostList::split(url).unwrap().has_gap(), "{url}");
        }
        for url in ["postgres://a,b/site", "postgres:///site?host=/run", "postgres://a"] {
            assert!(!HostList::split(url).unwrap().has_gap(), "{url}");
        }
    }
}

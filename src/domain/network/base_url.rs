//! The public URL of the service, with which every absolute link starts, and other URLs and addresses of web servers.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use percent_encoding::percent_decode_str;
use url::{Host, Position, Url};

use crate::domain::parse::Invalid;

/// Scheme, host and optional port, such as `https://troupe.example`: in lower case, without the
/// scheme's default port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    origin: String,
    host: Host,
    port: u16,
    https: bool,
}

const SYNTAX: &str = "it is not a URL such as https://troupe.example";

impl BaseUrl {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let url = Url::parse(text).map_err(|_| Invalid::new(SYNTAX))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Invalid::new("it must start with http:// or https://"));
        }
        let is_origin = url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        if !is_origin {
            return Err(Invalid::new("it must end after the host, without a path, query, user or password"));
        }
        Ok(Self {
            origin: url.origin().ascii_serialization(),
            host: url.host().ok_or_else(|| Invalid::new(SYNTAX))?.to_owned(),
            port: url.port_or_known_default().ok_or_else(|| Invalid::new(SYNTAX))?,
            https: url.scheme() == "https",
        })
    }

    /// The URL of a site that is reached at its listener.
    pub fn from_listen_address(address: SocketAddr) -> Self {
        let host = match local_address(address).ip() {
            IpAddr::V4(ip) => Host::Ipv4(ip),
            IpAddr::V6(ip) => Host::Ipv6(ip),
        };
        let port = match address.port() {
            80 => String::new(),
            port => format!(":{port}"),
        };
        Self { origin: format!("http://{host}{port}"), host, port: address.port(), https: false }
    }

    /// The origin: scheme, host and port.
    pub fn as_str(&self) -> &str {
        &self.origin
    }

    /// The host without a port.
    pub fn host(&self) -> String {
        self.host.to_string()
    }

    /// The host and port to connect to. An IPv6 address has no brackets.
    pub fn host_and_port(&self) -> (String, u16) {
        (dial_host(&self.host), self.port)
    }

    /// Returns the absolute URL of a path that starts with a slash.
    pub fn to(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// Returns the absolute form of a link in a page at `/`. One that is absolute stays as it is.
    pub fn absolute(&self, link: &str) -> String {
        let is_absolute = Url::parse(link).is_ok();
        let joined = Url::parse(&self.origin).and_then(|site| site.join(link)).ok().filter(|_| !is_absolute);
        joined.map_or_else(|| link.to_owned(), String::from)
    }

    /// The path and the anchor that a link in the page at `path` leads to, unless it leaves the site.
    pub fn within_site(&self, path: &str, link: &str) -> Option<(String, Option<String>)> {
        let url = Url::parse(&self.to(path)).ok()?.join(link).ok()?;
        let anchor = url.fragment().filter(|anchor| !anchor.is_empty());
        let anchor = anchor.map(|anchor| percent_decode_str(anchor).decode_utf8_lossy().into_owned());
        (url.origin().ascii_serialization() == self.origin).then(|| (url.path().to_owned(), anchor))
    }

    pub const fn is_https(&self) -> bool {
        self.https
    }

    pub const fn is_ip_address(&self) -> bool {
        !matches!(self.host, Host::Domain(_))
    }

    /// Whether only this machine can reach the URL, so that the service is a local preview.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }
}

/// Whether the host is this machine, including names below `localhost`.
pub(in crate::domain) fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Ipv4(ip) => ip.is_loopback(),
        Host::Ipv6(ip) => ip.to_canonical().is_loopback(),
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

/// Returns the name or IP address to connect to.
pub(in crate::domain) fn dial_host(host: &Host) -> String {
    match host {
        Host::Domain(name) => name.clone(),
        Host::Ipv4(ip) => ip.to_string(),
        Host::Ipv6(ip) => ip.to_string(),
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

/// Returns the address at which this machine reaches a listener. One on all addresses is reached by loopback.
pub fn local_address(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// Returns the normalized URL.
pub fn parse_web_url(text: &str) -> Result<String, Invalid> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url.to_string()),
        _ => Err(Invalid::new("it is not an http or https URL")),
    }
}

/// Parses the origin of a page as browsers send it. Apps and extensions have schemes of their own, such as `tauri://localhost`.
pub fn parse_origin(text: &str) -> Result<String, Invalid> {
    match Url::parse(text) {
        Ok(url)
            if !url.is_special()
                && url.has_host()
                && url[..Position::BeforeHost].len() == url.scheme().len() + 3
                && url[Position::AfterPort..].is_empty() =>
        {
            Ok(url.to_string())
        }
        _ => BaseUrl::parse(text).map(|origin| origin.to_string()),
    }
}

/// Returns the host of a URL.
pub fn host_of(url: &str) -> Option<String> {
    Some(Url::parse(url).ok()?.host_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_in_lower_case_and_without_the_default_port() {
        assert_eq!(BaseUrl::parse("HTTPS://Troupe.Example:443/").unwrap().as_str(), "https://troupe.example");
        assert_eq!(BaseUrl::parse("http://[::1]:8080").unwrap().as_str(), "http://[::1]:8080");
    }

    #[test]
    fn origins_of_apps_and_extensions_have_schemes_of_their_own() {
        for origin in
            ["tauri://localhost", "chrome-extension://fcoeoabgfenejglbffodgkkbkcdhcgfn", "https://a.example:8443"]
        {
            assert_eq!(parse_origin(origin).unwrap(), origin);
        }
        assert_eq!(parse_origin("HTTPS://A.example:443/").unwrap(), "https://a.example");
        for not_one in [
            "b",
            "null",
            "file:///",
            "data:text/html,x",
            "tauri://localhost/path",
            "tauri://localhost?a",
            "tauri://me@localhost",
            "ftp:a",
        ] {
            assert!(parse_origin(not_one).is_err(), "{not_one}");
        }
    }

    #[test]
    fn a_server_is_a_host_without_brackets_and_a_port() {
        for (text, host, port) in [
            ("https://Troupe.example", "troupe.example", 443),
            ("http://troupe.example", "troupe.example", 80),
            ("https://troupe.example:8443", "troupe.example", 8443),
            ("https://[2001:db8::1]", "2001:db8::1", 443),
            ("https://münchen.example", "xn--mnchen-3ya.example", 443),
        ] {
            assert_eq!(BaseUrl::parse(text).unwrap().host_and_port(), (host.to_owned(), port), "{text}");
        }
        let listener = BaseUrl::from_listen_address("[::1]:8080".parse().unwrap());
        assert_eq!(listener.host_and_port(), ("::1".to_owned(), 8080));
        for (address, url) in [("0.0.0.0:8080", "http://127.0.0.1:8080"), ("[::]:80", "http://[::1]")] {
            assert_eq!(BaseUrl::from_listen_address(address.parse().unwrap()).as_str(), url);
        }
    }

    #[test]
    fn a_url_with_more_than_the_origin_is_rejected() {
        for text in ["https://a.example/b", "https://a.example?x", "https://u:p@a.example", "https://a.example/#x"] {
            assert!(BaseUrl::parse(text).unwrap_err().to_string().starts_with("it must end after the host"), "{text}");
        }
        assert!(BaseUrl::parse("ftp://a.example").unwrap_err().to_string().starts_with("it must start with http"));
        assert_eq!(BaseUrl::parse("a.example"), Err(Invalid::new(SYNTAX)));
    }

    #[test]
    fn loopback_urls_are_a_local_preview() {
        for text in [
            "http://127.0.0.1:8080",
            "http://localhost",
            "http://LOCALHOST.",
            "http://a.localhost",
            "http://[::1]",
            "http://[::ffff:127.0.0.1]",
            "http://127.9.9.9",
        ] {
            assert!(BaseUrl::parse(text).unwrap().is_loopback(), "{text}");
        }
        for text in ["http://troupe.example", "http://192.168.0.1", "http://0.0.0.0:8080", "http://localhost.example"] {
            assert!(!BaseUrl::parse(text).unwrap().is_loopback(), "{text}");
        }
    }
}

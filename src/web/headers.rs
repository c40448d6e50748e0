//! Security headers of every response.

use std::net::IpAddr;

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Version};

use crate::domain::network::BaseUrl;

const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; \
    font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const SECURITY_HEADERS: [(HeaderName, HeaderValue); 6] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY)),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("strict-origin-when-cross-origin")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ),
];

/// Of a page that shows another one of this service in a frame.
pub(crate) fn policy_with_frame() -> (HeaderName, String) {
    (CONTENT_SECURITY_POLICY, format!("{PAGE_POLICY}; frame-src 'self'"))
}

/// Of a page in such a frame: nothing but text, style and images.
pub(crate) const FRAMED_POLICY: (HeaderName, &str) = (
    CONTENT_SECURITY_POLICY,
    "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'self'",
);

/// HSTS for two years, so that browsers no longer load the site over http. `None`: the site is not served over https.
pub(crate) fn hsts(base_url: &BaseUrl, includes_subdomains: bool) -> Option<HeaderValue> {
    let value = if includes_subdomains { "max-age=63072000; includeSubDomains" } else { "max-age=63072000" };
    base_url.is_https().then(|| HeaderValue::from_static(value))
}

/// For responses to one visitor: neither cached nor indexed, and no request that follows names their path, which may end in a
/// token.
pub(crate) const PRIVATE: [(HeaderName, &str); 3] = [
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("x-robots-tag"), "noindex"),
    (REFERRER_POLICY, "strict-origin"),
];

/// `Cache-Control` of what never changes.
pub(crate) const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// Lets pages of other sites show an image.
pub(crate) const SHOWN_BY_OTHER_SITES: (HeaderName, &str) =
    (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin");

/// Those that the response has stay. Prebuilt responses have all of them.
pub(crate) fn add_security_headers(headers: &mut HeaderMap) {
    if headers.contains_key(X_CONTENT_TYPE_OPTIONS) {
        return;
    }
    headers.reserve(SECURITY_HEADERS.len());
    for (name, value) in SECURITY_HEADERS {
        headers.entry(name).or_insert(value);
    }
}

/// Whether the request names its host once, as HTTP/1.1 requires.
pub(crate) fn has_one_host(version: Version, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).into_iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), None) => true,
        (None, _) => version != Version::HTTP_11,
        _ => false,
    }
}

/// The host of a request, if it is an IP address or `localhost`, which a page of another name cannot make a browser send (DNS
/// rebinding).
pub(crate) fn local_host(headers: &HeaderMap) -> Option<LocalHost> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return None };
    let authority = host.to_str().ok().filter(|host| !host.contains('@'))?.parse::<Authority>().ok()?;
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let domain = name.strip_suffix('.').unwrap_or(name);
    let is_loopback = match name.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) if domain.eq_ignore_ascii_case("localhost") => true,
        Err(_) => return None,
    };
    Some(LocalHost { port: authority.port_u16().unwrap_or(80), is_loopback, authority })
}

/// See [`local_host`].
#[derive(Clone, Debug)]
pub(crate) struct LocalHost {
    pub authority: Authority,
    pub port: u16,
    /// Whether it means this machine.
    pub is_loopback: bool,
}

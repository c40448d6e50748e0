//! Security headers of every response.

use std::net::IpAddr;

use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Version};

use crate::domain::network::BaseUrl;

const SECURITY_HEADERS: [(HeaderName, HeaderValue); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; \
             font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        ),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("strict-origin-when-cross-origin")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ),
];

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
    if headers.contains_key(CONTENT_SECURITY_POLICY) {
        return;
    }
    headers.reserve(SECURITY_HEADERS.len());
    for (name, value) in SECURITY_HEADERS {
        headers.entry(name).or_insert(value);
    }
}

/// Gives a response a policy of its own, with all other security headers.
pub(crate) fn with_policy(mut response: Response, policy: HeaderValue) -> Response {
    add_security_headers(response.headers_mut());
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}

/// Lets a page show others of the same origin in frames.
pub(crate) fn with_frames(mut response: Response) -> Response {
    add_security_headers(response.headers_mut());
    let policy = response.headers().get(CONTENT_SECURITY_POLICY).and_then(|policy| policy.to_str().ok());
    let policy = policy.and_then(|policy| HeaderValue::try_from(format!("{policy}; frame-src 'self'")).ok());
    match policy {
        Some(policy) => with_policy(response, policy),
        None => response,
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

//! Access control of the ops listener.

use std::net::IpAddr;

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::domain::sha256::Sha256;
use crate::web::response::text_response;

/// With a token, every request must carry it. Without one, the host of every request must be an IP address
/// or `localhost`, which protects against DNS rebinding.
#[derive(Clone, Debug)]
pub struct OpsAuth {
    token: Option<Sha256>,
}

impl OpsAuth {
    #[must_use]
    pub fn new(token: Option<&str>) -> Self {
        Self { token: token.map(|token| Sha256::of(token.as_bytes())) }
    }

    /// Returns the error response if the request is not allowed.
    pub(super) fn rejection(&self, headers: &HeaderMap) -> Option<Response> {
        match &self.token {
            Some(token) if credential(headers).is_some_and(|sent| is_equal(&Sha256::of(&sent), token)) => None,
            Some(_) => Some(unauthorized()),
            None if names_local_host(headers) => None,
            None => Some(text_response(
                StatusCode::MISDIRECTED_REQUEST,
                "Use an IP address such as 127.0.0.1, or localhost, as the host.\n",
            )),
        }
    }
}

/// Compares in constant time, so that the duration does not reveal where the hashes differ.
fn is_equal(a: &Sha256, b: &Sha256) -> bool {
    a.bytes().iter().zip(b.bytes()).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}

/// Returns the token of `Bearer`, or the password of `Basic`, which browsers prompt for.
fn credential(headers: &HeaderMap) -> Option<Vec<u8>> {
    let (scheme, value) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().as_bytes().to_vec());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = STANDARD.decode(value.trim()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some(decoded[colon + 1..].to_vec())
}

fn names_local_host(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    host.is_some_and(|host| {
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        let domain = name.strip_suffix('.').unwrap_or(name);
        domain.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
    })
}

fn unauthorized() -> Response {
    let mut response = text_response(
        StatusCode::UNAUTHORIZED,
        "Send `ops_token` as a bearer token, or as the password of basic authentication.\n",
    );
    response
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"porchlight\", charset=\"UTF-8\""));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn without_a_token_only_an_ip_address_or_localhost_is_allowed_as_host() {
        let open = OpsAuth::new(None);
        for host in ["127.0.0.1:8081", "[::1]:8081", "localhost:8081", "localhost", "LocalHost", "localhost.:8081"] {
            assert!(open.rejection(&headers(&[("host", host)])).is_none(), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:8081", "127.0.0.1.evil.example", "user@host:x"] {
            assert!(open.rejection(&headers(&[("host", host)])).is_some(), "{host}");
        }
        assert!(open.rejection(&HeaderMap::new()).is_some());
        let mut twice = headers(&[("host", "localhost")]);
        twice.append(HOST, HeaderValue::from_static("evil.example"));
        assert!(open.rejection(&twice).is_some());
    }

    #[test]
    fn with_a_token_only_requests_that_carry_it_are_allowed() {
        let guarded = OpsAuth::new(Some("a token that is long"));
        let good = ["Bearer a token that is long", "Basic bWU6YSB0b2tlbiB0aGF0IGlzIGxvbmc="];
        for value in good {
            assert!(guarded.rejection(&headers(&[("authorization", value)])).is_none(), "{value}");
        }
        for value in ["Bearer a token that is lon", "Basic bWU6", "Basic ?", "Bearer", "a token that is long"] {
            assert!(
                guarded.rejection(&headers(&[("authorization", value), ("host", "localhost")])).is_some(),
                "{value}"
            );
        }
        assert!(guarded.rejection(&HeaderMap::new()).is_some());
    }
}

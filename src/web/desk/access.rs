//! Where a browser reaches the desk: its origin, its cookies, and whether a request comes from a page of the desk.

use http::header::{COOKIE, HeaderName, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};

use crate::domain::desk::{CookieScope, CookieSecret};
use crate::domain::limits::{SESSION_LIFE, SIGN_IN_LINK_LIFE};
use crate::domain::network::{BaseUrl, Peer};
use crate::web::headers::local_host;
use crate::web::limits::FORWARDING_HEADERS;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Where it begins, and its name in the log.
pub(crate) const ROOT: &str = "/desk";
/// Everything below.
pub(crate) const PAGE_ROUTE: &str = "/desk/{*path}";

/// Whether a path is one of the desk.
pub(crate) fn is_below(path: &str) -> bool {
    path.strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[derive(Clone, Debug)]
pub(super) struct Place {
    pub origin: String,
    /// The port, where cookies need a name of their own: browsers send those of a host to all of its ports.
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Cookie {
    Session,
    /// Of the browser that asked for a link by mail.
    Browser,
}

impl Place {
    /// Only over https, or behind a proxy that speaks it: see `Desk`.
    pub(super) fn public(base_url: &BaseUrl) -> Self {
        Self { origin: base_url.as_str().to_owned(), port: None }
    }

    /// Returns `None` unless the browser is on this machine, and knows the listener by a name of this machine. A proxy on this
    /// machine would lead others here.
    pub(super) fn on_ops_listener(head: &Parts) -> Option<Self> {
        if FORWARDING_HEADERS.iter().any(|name| head.headers.contains_key(*name)) {
            return None;
        }
        let is_near = head.extensions.get::<Peer>().is_some_and(|peer| peer.address().is_loopback());
        let host = local_host(&head.headers).filter(|host| is_near && host.is_loopback)?;
        Some(Self { origin: format!("http://{}", host.authority), port: Some(host.port) })
    }

    /// Whether a page of this origin sent the request. A browser that sends neither header is not believed.
    pub(super) fn is_origin_of(&self, headers: &HeaderMap) -> bool {
        match (headers.get(SEC_FETCH_SITE), headers.get(ORIGIN)) {
            (Some(site), _) => site == "same-origin",
            (None, Some(origin)) => origin == self.origin.as_str(),
            (None, None) => false,
        }
    }

    /// Returns the first one that can be read. Others beside it may be of any bytes.
    pub(super) fn read(&self, cookie: Cookie, headers: &HeaderMap) -> Option<CookieSecret> {
        let name = self.name(cookie);
        let mut pairs =
            headers.get_all(COOKIE).into_iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
        pairs.find_map(|pair| {
            let (key, value) = str::from_utf8(pair).ok()?.trim().split_once('=')?;
            CookieSecret::parse(value).filter(|_| key == name)
        })
    }

    pub(super) const fn scope(&self) -> CookieScope {
        if self.port.is_some() { CookieScope::OpsListener } else { CookieScope::PublicUrl }
    }

    /// The value of `Set-Cookie`. `None` deletes the cookie.
    pub(super) fn set(&self, cookie: Cookie, secret: Option<&CookieSecret>) -> Option<HeaderValue> {
        let life = match (cookie, secret) {
            (_, None) => 0,
            (Cookie::Session, _) => SESSION_LIFE.as_secs(),
            (Cookie::Browser, _) => SIGN_IN_LINK_LIFE.as_secs(),
        };
        let secure = if self.port.is_none() { "; Secure" } else { "" };
        let (name, value) = (self.name(cookie), secret.map_or("", CookieSecret::expose));
        let text = format!("{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{secure}");
        HeaderValue::try_from(text).ok()
    }

    fn name(&self, cookie: Cookie) -> String {
        let name = match cookie {
            Cookie::Session => "porchlight-desk",
            Cookie::Browser => "porchlight-sign-in",
        };
        match self.port {
            None => format!("__Host-{name}"),
            Some(port) => format!("{name}-{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    fn local() -> Place {
        Place { origin: "http://127.0.0.1:8081".to_owned(), port: Some(8081) }
    }

    #[test]
    fn only_a_page_of_the_same_origin_changes_something() {
        let (site, origin) = ("sec-fetch-site", "origin");
        for good in [
            &[(site, "same-origin")][..],
            &[(site, "same-origin"), (origin, "null")],
            &[(origin, "http://127.0.0.1:8081")],
        ] {
            assert!(local().is_origin_of(&headers(good)), "{good:?}");
        }
        for wrong in [
            &[][..],
            &[(site, "same-site")],
            &[(site, "cross-site"), (origin, "http://127.0.0.1:8081")],
            &[(site, "none")],
            &[(origin, "null")],
            &[(origin, "http://127.0.0.1:9999")],
            &[(origin, "http://127.0.0.1:8081.evil.example")],
            &[(origin, "https://127.0.0.1:8081")],
        ] {
            assert!(!local().is_origin_of(&headers(wrong)), "{wrong:?}");
        }
    }

    #[test]
    fn a_cookie_belongs_to_one_host_and_is_read_by_its_whole_name() {
        let secret = CookieSecret::parse(&"ab".repeat(32)).unwrap();
        let public = Place::public(&BaseUrl::parse("https://troupe.example").unwrap());
        let set = public.set(Cookie::Session, Some(&secret)).unwrap();
        let set = set.to_str().unwrap();
        assert!(set.starts_with("__Host-porchlight-desk=abab") && set.ends_with("; HttpOnly; SameSite=Strict; Secure"));
        assert!(set.contains("; Path=/; Max-Age=2592000;"), "{set}");
        let set = local().set(Cookie::Session, Some(&secret)).unwrap();
        assert!(set.to_str().unwrap().starts_with("porchlight-desk-8081=abab"), "{set:?}");
        assert!(!set.to_str().unwrap().contains("Secure"));
        let cookie = format!("a=b; porchlight-desk-8081={}; c", secret.expose());
        let mut request = HeaderMap::new();
        request.append(COOKIE, HeaderValue::try_from(cookie).unwrap());
        assert_eq!(local().read(Cookie::Session, &request).unwrap().expose(), secret.expose());
        assert!(local().read(Cookie::Browser, &request).is_none() && public.read(Cookie::Session, &request).is_none());
        let beside = format!("theme=caf\u{e9}; porchlight-desk-8081=x; porchlight-desk-8081={}", secret.expose());
        let bytes: Vec<_> = beside.chars().map(|c| c as u8).collect();
        request.insert(COOKIE, HeaderValue::from_bytes(&bytes).unwrap());
        assert_eq!(local().read(Cookie::Session, &request).unwrap().expose(), secret.expose(), "beside others");
    }
}

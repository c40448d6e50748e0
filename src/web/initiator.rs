//! Determines who sent a request: a page of the site, a page of another site, or a program; and which reader, for the counts.

use http::HeaderMap;
use http::header::{HeaderName, ORIGIN, USER_AGENT};

use crate::domain::network::BaseUrl;
use crate::domain::statistics::Reader;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Read from headers that a script in a browser cannot change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Initiator {
    /// A page of the site.
    OwnPage,
    /// A page of another site.
    OtherSite,
    /// Neither header was sent, or no page was involved: a program, or an old browser.
    Unknown,
}

impl Initiator {
    pub(crate) fn of(headers: &HeaderMap, base_url: &BaseUrl) -> Self {
        // Preferred to `Origin`, since the site may be reachable under other names than `base_url`.
        if let Some(site) = headers.get(SEC_FETCH_SITE) {
            return match site.as_bytes() {
                b"same-origin" => Self::OwnPage,
                b"none" => Self::Unknown,
                _ => Self::OtherSite,
            };
        }
        match headers.get(ORIGIN) {
            Some(origin) if origin.as_bytes() == base_url.as_str().as_bytes() => Self::OwnPage,
            Some(_) => Self::OtherSite,
            None => Self::Unknown,
        }
    }
}

pub(crate) fn reader_of(headers: &HeaderMap, asks_for_markdown: bool) -> Reader {
    let user_agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
    Reader::of_user_agent(user_agent, asks_for_markdown)
}

//! URLs of files on other hosts.

use url::Url;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not an http or https URL")]
pub struct InvalidWebUrl;

/// Returns the normalized URL.
pub fn parse_web_url(text: &str) -> Result<String, InvalidWebUrl> {
    let url = Url::parse(text).map_err(|_| InvalidWebUrl)?;
    let is_web_url = matches!(url.scheme(), "http" | "https") && url.has_host();
    if is_web_url { Ok(url.to_string()) } else { Err(InvalidWebUrl) }
}

/// Returns the host of a URL.
pub fn host_of(url: &str) -> Option<String> {
    Some(Url::parse(url).ok()?.host_str()?.to_owned())
}

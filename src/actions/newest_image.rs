//! Where the newest disk image is.

use crate::domain::base_url::BaseUrl;
use crate::domain::release::{Releases, file_stem};

/// The address handed out to those who download. It stays the same from release to release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewestImage {
    /// The makers keep their releases at another host.
    External(String),
    /// A local preview: the newest release, and a sample while there is none.
    Preview(String),
    /// The newest release; nothing while there is none.
    Published(String),
}

impl NewestImage {
    #[must_use]
    pub fn choose(download_url: Option<&str>, base_url: &BaseUrl, app: &str) -> Self {
        let latest = || base_url.to(&latest_path(app));
        match download_url {
            Some(url) => Self::External(url.to_owned()),
            None if base_url.is_loopback() => Self::Preview(latest()),
            None => Self::Published(latest()),
        }
    }

    #[must_use]
    pub fn url(&self) -> &str {
        match self {
            Self::External(url) | Self::Preview(url) | Self::Published(url) => url,
        }
    }

    /// Whether who follows the address finds an image there.
    #[must_use]
    pub fn is_available(&self, releases: &Releases) -> bool {
        !self.requires_release() || releases.newest().is_some()
    }

    /// Whether the address leads nowhere as long as there is no release.
    #[must_use]
    pub const fn requires_release(&self) -> bool {
        matches!(self, Self::Published(_))
    }
}

/// Where the newest release is to be had, whichever it is.
#[must_use]
pub fn latest_path(app: &str) -> String {
    format!("/releases/latest/{}.dmg", file_stem(app))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_release_only_a_preview_and_an_address_elsewhere_have_an_image() {
        let choose = |url, base| NewestImage::choose(url, &BaseUrl::parse(base).unwrap(), "Tea Time");
        let (nothing, latest) = (Releases::default(), "/releases/latest/Tea-Time.dmg");

        let preview = choose(None, "http://127.0.0.1:8080");
        assert_eq!(preview.url(), format!("http://127.0.0.1:8080{latest}"));
        assert!(preview.is_available(&nothing));

        let published = choose(None, "https://tea.example");
        assert_eq!(published.url(), format!("https://tea.example{latest}"));
        assert!(!published.is_available(&nothing));

        let elsewhere = choose(Some("https://files.example/latest.dmg"), "https://tea.example");
        assert_eq!(elsewhere.url(), "https://files.example/latest.dmg");
        assert!(elsewhere.is_available(&nothing));
    }
}

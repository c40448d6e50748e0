//! The URL of the newest disk image.

use crate::domain::base_url::BaseUrl;
use crate::domain::disk_image::file_stem;
use crate::domain::release::Releases;

/// The URL that every download gets. It stays the same from release to release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewestImage {
    /// The setting `download_url`: images are hosted elsewhere.
    External(String),
    /// A local preview: the newest release, or a sample image if there is none.
    Preview(String),
    /// The newest release.
    Published(String),
}

impl NewestImage {
    pub fn choose(download_url: Option<&str>, base_url: &BaseUrl, app: &str) -> Self {
        let latest = || base_url.to(&latest_path(app));
        match download_url {
            Some(url) => Self::External(url.to_owned()),
            None if base_url.is_loopback() => Self::Preview(latest()),
            None => Self::Published(latest()),
        }
    }

    pub fn url(&self) -> &str {
        match self {
            Self::External(url) | Self::Preview(url) | Self::Published(url) => url,
        }
    }

    /// Whether the URL leads to an image.
    pub fn is_available(&self, releases: &Releases) -> bool {
        !self.requires_release() || releases.newest().is_some()
    }

    /// Whether the URL leads to an image only if there is a release.
    pub const fn requires_release(&self) -> bool {
        matches!(self, Self::Published(_))
    }
}

/// The path that redirects to the newest release.
pub fn latest_path(app: &str) -> String {
    format!("/releases/latest/{}.dmg", file_stem(app))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_release_only_a_preview_and_an_external_url_lead_to_an_image() {
        let choose = |url, base| NewestImage::choose(url, &BaseUrl::parse(base).unwrap(), "Tea Time");
        let (no_releases, latest) = (Releases::default(), "/releases/latest/Tea-Time.dmg");

        let preview = choose(None, "http://127.0.0.1:8080");
        assert_eq!(preview.url(), format!("http://127.0.0.1:8080{latest}"));
        assert!(preview.is_available(&no_releases));

        let published = choose(None, "https://tea.example");
        assert_eq!(published.url(), format!("https://tea.example{latest}"));
        assert!(!published.is_available(&no_releases));

        let external = choose(Some("https://files.example/latest.dmg"), "https://tea.example");
        assert_eq!(external.url(), "https://files.example/latest.dmg");
        assert!(external.is_available(&no_releases));
    }
}

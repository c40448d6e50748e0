//! Where the newest disk image is.

use super::Failure;
use crate::domain::base_url::BaseUrl;

/// The address handed out to those who download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewestImage {
    /// Always leads to the newest image.
    At(String),
    /// Looks as the real address will, and leads nowhere until releases can be published.
    Placeholder(String),
    /// There is nothing to hand out yet.
    Nothing,
}

impl NewestImage {
    /// An address elsewhere if the makers named one; in a local preview a placeholder; else nothing.
    #[must_use]
    pub fn choose(download_url: Option<&str>, base_url: &BaseUrl, app: &str) -> Self {
        match download_url {
            Some(url) => Self::At(url.to_owned()),
            None if base_url.is_loopback() => Self::Placeholder(base_url.to(&format!("/releases/latest/{app}.dmg"))),
            None => Self::Nothing,
        }
    }

    /// Whether a browser that follows the address finds an image there.
    #[must_use]
    pub const fn is_there(&self) -> bool {
        matches!(self, Self::At(_))
    }

    /// # Errors
    /// `Unavailable` while there is nothing to hand out.
    pub fn url(&self) -> Result<&str, Failure> {
        match self {
            Self::At(url) | Self::Placeholder(url) => Ok(url),
            Self::Nothing => Err(Failure::Unavailable("no disk image has been published yet".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_local_preview_makes_an_address_up() {
        let choose = |url, base| NewestImage::choose(url, &BaseUrl::parse(base).unwrap(), "Troupe");
        assert_eq!(
            choose(None, "http://127.0.0.1:8080"),
            NewestImage::Placeholder("http://127.0.0.1:8080/releases/latest/Troupe.dmg".to_owned())
        );
        assert_eq!(choose(None, "https://troupe.example"), NewestImage::Nothing);
        assert_eq!(
            choose(Some("https://files.example/latest.dmg"), "https://troupe.example"),
            NewestImage::At("https://files.example/latest.dmg".to_owned())
        );
    }
}

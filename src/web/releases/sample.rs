//! The sample disk image, which a local preview hands out until a release is published. It is called a sample wherever it
//! is offered.

use bytes::Bytes;
use serde::Serialize;

use super::size::size;
use crate::actions::NewestImage;
use crate::domain::base_url::BaseUrl;
use crate::domain::disk_image::file_stem;
use crate::domain::release::Releases;
use crate::domain::sha256::Sha256;
use crate::site::{Content, SiteFailure};

const CONTENT_FILE: &str = "sample.dmg";

/// `Serialize` produces the form of `/releases.json` and of the templates.
#[derive(Debug, Serialize)]
pub(crate) struct Sample {
    note: &'static str,
    pub file: String,
    url: String,
    length: u64,
    pub size: String,
    pub sha256: String,
    #[serde(skip)]
    pub bytes: Bytes,
}

impl Sample {
    pub(crate) const NOTE: &str =
        "This is a local preview, and nothing is published yet: the download is a sample disk image without the app.";

    /// Reads the sample if downloads get it.
    pub(crate) fn if_offered(
        content: &Content,
        app_name: &str,
        base_url: &BaseUrl,
        newest_image: &NewestImage,
        releases: &Releases,
    ) -> Result<Option<Self>, SiteFailure> {
        if !matches!(newest_image, NewestImage::Preview(_)) || releases.newest().is_some() {
            return Ok(None);
        }
        let bytes = Bytes::from(content.bytes(CONTENT_FILE)?.into_owned());
        let (file, length) = (file_name(app_name), bytes.len() as u64);
        Ok(Some(Self {
            note: Self::NOTE,
            url: base_url.to(&path(&file)),
            file,
            length,
            size: size(length),
            sha256: Sha256::of(&bytes).hex(),
            bytes,
        }))
    }
}

pub(super) fn file_name(app_name: &str) -> String {
    format!("{}-sample.dmg", file_stem(app_name))
}

pub(super) fn path(file: &str) -> String {
    format!("/releases/{file}")
}

//! What is not set up yet when the service starts.

use crate::actions::NewestImage;
use crate::domain::base_url::BaseUrl;
use crate::domain::release::Releases;

/// Returns one sentence for each.
pub(super) fn setup_hints(newest_image: &NewestImage, releases: &Releases, base_url: &BaseUrl) -> Vec<String> {
    let mut setup_hints = Vec::new();
    if base_url.is_loopback() {
        setup_hints.push("This is a local preview. Set `base_url` to the public address to go live.".to_owned());
    }
    match newest_image {
        NewestImage::Preview(_) if releases.newest().is_none() => setup_hints.push(
            "Downloads get a sample disk image. Publish your own with `porchlight release publish FILE.dmg --version 1.0.0`."
                .to_owned(),
        ),
        NewestImage::Published(_) if releases.newest().is_none() => setup_hints.push(
            "No disk image has been published, so downloads are answered with 503. Publish one with \
             `porchlight release publish FILE.dmg --version 1.0.0`, or set `download_url`."
                .to_owned(),
        ),
        _ => {}
    }
    setup_hints
}

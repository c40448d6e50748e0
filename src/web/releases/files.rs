//! The files about releases that are built once: lists, feeds, and the preview's sample image.

use http::header::{ACCEPT_RANGES, CONTENT_DISPOSITION};

use super::{feeds, listing};
use crate::actions::NewestImage;
use crate::domain::base_url::BaseUrl;
use crate::domain::release::{Releases, file_stem};
use crate::site::{PageName, Site, sample_image};
use crate::web::representation::Draft;

pub(super) const DISK_IMAGE: &str = "application/x-apple-diskimage";

/// The files about releases, and in a preview without any the sample, with their paths.
pub(crate) fn release_files(
    site: &Site,
    base_url: &BaseUrl,
    newest_image: &NewestImage,
    releases: &Releases,
) -> Vec<(String, Draft)> {
    let facts = &site.facts;
    let listed = listing::releases_json(&facts.name, releases, base_url);
    let made = &site.page(PageName::Releases).last_updated;
    let appcast = site.appcast.clone().unwrap_or_else(|| feeds::appcast(facts, releases, base_url).into_bytes());
    let mut files = vec![
        (listing::RELEASES_JSON.to_owned(), fresh("application/json", format!("{listed:#}\n").into_bytes())),
        (feeds::APPCAST.to_owned(), fresh("application/rss+xml", appcast)),
        (
            feeds::ATOM.to_owned(),
            fresh("application/atom+xml", feeds::atom(facts, releases, base_url, made).into_bytes()),
        ),
    ];
    if matches!(newest_image, NewestImage::Preview(_)) && releases.newest().is_none() {
        let sample = fresh(DISK_IMAGE, sample_image(&facts.name))
            .with(CONTENT_DISPOSITION, attachment(&sample_name(&facts.name)))
            .with(ACCEPT_RANGES, "none");
        files.push((format!("/releases/{}", sample_name(&facts.name)), sample));
    }
    files
}

/// Changes with the next release: everybody asks again.
fn fresh(content_type: &'static str, body: Vec<u8>) -> Draft {
    Draft { cache_control: "no-cache", ..Draft::file(content_type, body) }
}

pub(super) fn sample_name(app: &str) -> String {
    format!("{}-sample.dmg", file_stem(app))
}

pub(super) fn attachment(file: &str) -> String {
    format!("attachment; filename=\"{file}\"")
}

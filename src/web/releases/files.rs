//! The prebuilt files about releases: lists, feeds, and the preview's sample image.

use bytes::Bytes;
use http::header::{ACCEPT_RANGES, CONTENT_DISPOSITION};
use serde_json::json;

use super::feeds::{self, Feed};
use super::listing::{self, ReleaseList};
use super::sample::{self, Sample};
use crate::domain::base_url::BaseUrl;
use crate::domain::disk_image::{MEDIA_TYPE, attachment};
use crate::domain::reads::Reading;
use crate::domain::release::Releases;
use crate::site::{Site, SiteFailure};
use crate::web::representation::UnencodedResponse;

/// The lists of releases, and in a preview without releases the sample image, with their paths.
pub(crate) fn release_files(
    site: &Site,
    base_url: &BaseUrl,
    releases: &Releases,
    sample: Option<&Sample>,
) -> Result<Vec<(String, UnencodedResponse)>, SiteFailure> {
    let name = &site.facts.name;
    let list = json!(ReleaseList::new(name, releases, sample, base_url));
    let feed = Feed::new(site, releases, base_url);
    let appcast = match &site.appcast {
        Some(appcast) => appcast.clone(),
        None => feed.appcast(site)?.into_bytes(),
    };
    let mut files = vec![
        (
            listing::RELEASES_JSON.to_owned(),
            UnencodedResponse {
                reading: Some(Reading::Briefing),
                ..revalidated("application/json", format!("{list:#}\n"))
            },
        ),
        (feeds::APPCAST.to_owned(), revalidated("application/rss+xml", appcast)),
        (feeds::ATOM.to_owned(), revalidated("application/atom+xml", feed.atom(site)?)),
    ];
    if let Some(sample) = sample {
        let image = revalidated(MEDIA_TYPE, sample.bytes.clone())
            .with_header(CONTENT_DISPOSITION, attachment(&sample.file))
            .with_header(ACCEPT_RANGES, "none");
        files.push((sample::path(&sample.file), image));
    }
    Ok(files)
}

/// A file that the next release changes, so caches must revalidate it.
fn revalidated(content_type: &'static str, body: impl Into<Bytes>) -> UnencodedResponse {
    UnencodedResponse { cache_control: "no-cache", ..UnencodedResponse::file(content_type, body) }
}

//! Checks what visitors get: the pages and the download.

use super::finding::{Finding, failed, note, ok};
use crate::actions::{ImageStore, NewestImage, ReleaseCatalog, image_problem};
use crate::config::{InvalidSettings, Settings};
use crate::domain::network::BaseUrl;
use crate::domain::releases::{Release, Releases};
use crate::site::{Content, MailTemplates, Policies, SiteFacts, SiteFailure};
use crate::store::Store;
use crate::web;

/// Builds the whole site. Returns also the facts about the app, and where downloads lead.
pub(super) fn check_site(
    settings: &Settings,
    base_url: &BaseUrl,
    releases: &Releases,
) -> Result<(Finding, SiteFacts, NewestImage), SiteFailure> {
    let content = Content::from_settings(settings)?;
    let facts = SiteFacts::read(&content)?;
    let newest_image = NewestImage::choose(settings.download_url.as_deref(), base_url, &facts.name);
    let files = web::try_build(&content, base_url, &newest_image, releases, &Policies::from_settings(settings))?;
    MailTemplates::read(&content, base_url.clone(), settings.postal_address.as_deref())?;
    let origin = settings
        .site_dir
        .as_deref()
        .map_or_else(|| "the built-in site".to_owned(), |folder| format!("with the files of {}", folder.display()));
    let built = ok(format!("{}, {origin}; all {files} pages and files can be built", facts.name));
    Ok((built, facts, newest_image))
}

pub(super) async fn check_release(
    images: &Result<ImageStore, InvalidSettings>,
    store: Option<&Store>,
    newest_image: &NewestImage,
) -> Result<Finding, Finding> {
    const PUBLISH: &str = "`porchlight release publish FILE.dmg --version 1.0.0` publishes one.";
    if let NewestImage::External(url) = newest_image {
        return Ok(ok(format!("downloads redirect to {url}")));
    }
    let Some(store) = store else {
        return Err(match newest_image {
            NewestImage::Preview(_) => note(format!("Downloads get a sample disk image. {PUBLISH}")),
            _ => failed(format!("Downloads are answered with 503: no release is known. {PUBLISH}")),
        });
    };
    let catalog = ReleaseCatalog::new(store.clone(), images.as_ref().map_err(failed)?.clone());
    let refreshed = catalog.refresh().await;
    refreshed.map_err(|failure| failed(format!("The published releases could not be read: {failure}.")))?;
    if let Some(version) = catalog.cached().unreadable().first() {
        return Err(failed(format!("The release {version} in the database is damaged, and is not offered.")));
    }
    let missing = image_problem(&catalog, newest_image).await;
    Ok(match (catalog.cached().newest(), missing) {
        (Some(Release { version, external_url: Some(url), .. }), None) => {
            ok(format!("{version} is the newest, at {url}"))
        }
        (Some(release), None) => ok(format!("{} is the newest, and {}", release.version, place(&catalog, release))),
        (Some(_), Some(missing)) => failed(format!("Downloads fail: {missing}.")),
        (None, Some(missing)) => failed(format!("Downloads are answered with 503: {missing}. {PUBLISH}")),
        (None, None) => note(format!("Downloads get a sample disk image. {PUBLISH}")),
    })
}

fn place(catalog: &ReleaseCatalog, release: &Release) -> String {
    match catalog.images() {
        ImageStore::Folder(_) => "its file can be read here".to_owned(),
        ImageStore::Bucket(bucket) => format!("{} can be read", bucket.object_name(release)),
    }
}

//! Checks what visitors get: the pages and the download.

use super::finding::Finding;
use crate::actions::{ImageStore, NewestImage, ReleaseCatalog, image_problem};
use crate::cli::base_url;
use crate::clock::Clock;
use crate::config::Settings;
use crate::domain::calendar::Day;
use crate::domain::plural::quantity;
use crate::domain::release::{Release, Releases};
use crate::site::{Content, LetterTemplate, Policies, SiteFacts, SiteFailure};
use crate::store::Store;
use crate::web;

/// How many days before its last day a warning about security.txt begins.
const SECURITY_TXT_NOTICE_DAYS: i64 = 30;

/// Returns the findings about the site's files, the facts about the app, and where downloads lead.
pub(super) fn check_site(
    settings: &Settings,
    releases: &Releases,
    today: Day,
) -> Result<(Vec<Finding>, SiteFacts, NewestImage), SiteFailure> {
    let content = Content::from_settings(settings)?;
    let (facts, base_url) = (SiteFacts::read(&content)?, base_url(settings));
    let newest_image = NewestImage::choose(settings.download_url.as_deref(), &base_url, &facts.name);
    let files = web::try_build(&content, &base_url, &newest_image, releases, &Policies::from_settings(settings))?;
    LetterTemplate::read(&content, base_url, settings.postal_address.as_deref().unwrap_or_default())?;
    let origin = settings
        .site_dir
        .as_deref()
        .map_or_else(|| "the built-in site".to_owned(), |folder| format!("with the files of {}", folder.display()));
    let built = Finding::ok("site", format!("{}, {origin}; all {files} pages and files can be built", facts.name));
    let findings = std::iter::once(built).chain(check_security_txt(&facts, today)).collect();
    Ok((findings, facts, newest_image))
}

/// Researchers must not rely on an expired file, so the makers look at it again in time.
fn check_security_txt(facts: &SiteFacts, today: Day) -> Option<Finding> {
    let last = facts.security_txt_expires.filter(|last| last.before(SECURITY_TXT_NOTICE_DAYS) <= today)?;
    let expires = if last < today { "expired" } else { "expires" };
    let detail = format!(
        "/.well-known/security.txt {expires} at the end of {}. If the contact page still says what is true, set \
         `security_txt_expires` in site.toml to a later day.",
        last.date()
    );
    Some(Finding::note("security", detail))
}

pub(super) async fn check_release(settings: &Settings, store: Option<Store>, newest_image: &NewestImage) -> Finding {
    const NAME: &str = "release";
    const PUBLISH: &str = "`porchlight release publish FILE.dmg --version 1.0.0` publishes one.";
    if let NewestImage::External(url) = newest_image {
        return Finding::ok(NAME, format!("downloads redirect to {url}"));
    }
    let Some(store) = store else {
        return match newest_image {
            NewestImage::Preview(_) => Finding::note(NAME, format!("Downloads get a sample disk image. {PUBLISH}")),
            _ => Finding::failed(NAME, format!("Downloads are answered with 503: no release is known. {PUBLISH}")),
        };
    };
    let images = match ImageStore::open(&settings.images, Clock::System) {
        Ok(images) => images,
        Err(error) => return Finding::failed(NAME, error.to_string()),
    };
    let catalog = ReleaseCatalog::new(store, images);
    if let Err(failure) = catalog.refresh().await {
        return Finding::failed(NAME, format!("The published releases could not be read: {failure}."));
    }
    if let Some(version) = catalog.cached().unreadable().first() {
        return Finding::failed(NAME, format!("The release {version} in the database is damaged, and is not offered."));
    }
    let missing = image_problem(&catalog, newest_image).await;
    match (catalog.cached().newest(), missing) {
        (Some(release), None) => match &release.external_url {
            Some(url) => Finding::ok(NAME, format!("{} is the newest, at {url}", release.version)),
            None => Finding::ok(NAME, format!("{} is the newest, and {}", release.version, place(&catalog, release))),
        },
        (Some(_), Some(missing)) => Finding::failed(NAME, format!("Downloads fail: {missing}.")),
        (None, Some(missing)) => {
            Finding::failed(NAME, format!("Downloads are answered with 503: {missing}. {PUBLISH}"))
        }
        (None, None) => Finding::note(NAME, format!("Downloads get a sample disk image. {PUBLISH}")),
    }
}

/// Reads all images that are offered, and compares them with what was published.
pub(super) async fn check_images(settings: &Settings, releases: &Releases) -> Finding {
    const NAME: &str = "images";
    let images = match ImageStore::open(&settings.images, Clock::System) {
        Ok(images) => images,
        Err(error) => return Finding::failed(NAME, error.to_string()),
    };
    let (mut verified, mut failures) = (0_u64, Vec::new());
    for release in releases.available().filter(|release| release.external_url.is_none()) {
        match images.verify(release).await {
            Ok(()) => verified += 1,
            Err(failure) => failures.push(format!("{} ({failure})", release.file)),
        }
    }
    if failures.is_empty() {
        let images = quantity(verified, "image has", "images have");
        return Finding::ok(NAME, format!("{images} the SHA-256 of what was published"));
    }
    let detail = format!(
        "Not what was published: {}. Put back the published file, or withdraw the release.",
        failures.join(", ")
    );
    Finding::failed(NAME, detail)
}

fn place(catalog: &ReleaseCatalog, release: &Release) -> String {
    match catalog.images() {
        ImageStore::Folder(_) => "its file can be read here".to_owned(),
        ImageStore::Bucket(bucket) => format!("{} can be read", bucket.object_name(release)),
    }
}

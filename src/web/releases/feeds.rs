//! What is built once about the releases: lists for people and programs, feeds, and the preview's sample image.

use std::fmt::Display;

use bytes::Bytes;
use http::header::CONTENT_DISPOSITION;
use serde::Serialize;
use serde_json::{Value, json};

use crate::actions::NewestImage;
use crate::domain::network::BaseUrl;
use crate::domain::releases::{
    MEDIA_TYPE, MacosVersion, Reason, Release, Releases, Signature, Withdrawal, attachment, file_stem,
};
use crate::domain::sha256::Sha256;
use crate::domain::time::Timestamp;
use crate::site::{Content, PageName, Site, SiteFacts, SiteFailure, markdown_to_html, nest_markdown};
use crate::web::representation::UnencodedResponse;

const ATOM: &str = "/releases.atom";
/// What Sparkle reads to find updates.
pub(crate) const APPCAST: &str = "/appcast.xml";

/// The lists of releases, and in a preview without releases the sample image, with their paths.
pub(crate) fn release_files(
    site: &Site,
    base_url: &BaseUrl,
    releases: &Releases,
    sample: Option<&Sample>,
) -> Result<Vec<(String, UnencodedResponse)>, SiteFailure> {
    let list = release_list(&site.facts, base_url, releases, sample);
    let feed = feed(site, base_url, releases);
    // What Sparkle 2 reads to find updates. An app must ask for every channel but the stable one.
    let appcast = match &site.appcast {
        Some(appcast) => appcast.clone(),
        None => site.render_str("appcast.xml", include_str!("appcast.xml"), &feed)?.into(),
    };
    let atom = site.render_str("releases.atom", include_str!("releases.atom"), &feed)?;
    let mut files = vec![
        ("/releases.json".to_owned(), UnencodedResponse::briefing("application/json", format!("{list:#}\n"))),
        (APPCAST.to_owned(), UnencodedResponse::file("application/rss+xml", appcast)),
        (ATOM.to_owned(), UnencodedResponse::file("application/atom+xml", atom)),
    ];
    if let Some(sample) = sample {
        let image = UnencodedResponse::file(MEDIA_TYPE, sample.bytes.clone())
            .with_header(CONTENT_DISPOSITION, attachment(&sample.file));
        files.push((image_path(&sample.file), image));
    }
    Ok(files)
}

/// `/releases.json`: the available releases, the highest version first.
fn release_list(facts: &SiteFacts, base_url: &BaseUrl, releases: &Releases, sample: Option<&Sample>) -> Value {
    let listed = releases.available().map(|release| {
        json!({
            "version": release.version.to_string(),
            "date": release.published.rfc3339(),
            "length": release.length,
            "sha256": release.sha256.hex(),
            "minimum_macos": minimum_macos(release, facts),
            "prerelease": !release.channel.is_stable(),
            "channel": release.channel.as_str(),
            "critical": release.critical,
            "notes": release.notes.as_str(),
            "url": image_url(release, base_url),
        })
    });
    let mut list = json!({
        "app": facts.name,
        "latest": releases.newest().map(|release| release.version.to_string()),
        "releases": listed.collect::<Vec<_>>(),
        "withdrawn": withdrawn(releases)
            .map(|(release, at, reason)| {
                json!({ "version": release.version.as_str(), "date": at.rfc3339(), "reason": reason.as_str() })
            })
            .collect::<Vec<_>>(),
    });
    if let Some(sample) = sample {
        list["sample"] = json!(sample);
    }
    list
}

/// What both feeds show.
fn feed(site: &Site, base_url: &BaseUrl, releases: &Releases) -> Value {
    let latest = releases.available().map(|release| release.published.rfc3339()).max();
    let view = |release| {
        let mut view = release_view(release, base_url);
        view["minimum_macos"] = json!(minimum_macos(release, &site.facts));
        view["critical_below"] = json!(releases.critical_up_to(release).map(Release::build_or_version));
        view["rollout_interval"] = json!(release.phased.interval_seconds());
        view
    };
    let page = site.page(PageName::Releases);
    json!({
        "site_language": site.facts.language.as_str(),
        "title": site.feed_title("feed"),
        "app_name": site.facts.name,
        "tagline": site.facts.tagline,
        "maker": site.facts.maker,
        "page_url": base_url.to(PageName::Releases.path()),
        "atom_url": base_url.to(ATOM),
        "updated": latest.unwrap_or_else(|| format!("{}T00:00:00Z", page.last_updated)),
        "releases": releases.available().map(view).collect::<Vec<_>>(),
    })
}

/// The oldest macOS that programs should offer the release to. Pages show `system` for a release that names none.
fn minimum_macos<'a>(release: &'a Release, facts: &'a SiteFacts) -> Option<&'a str> {
    release.minimum_macos.as_ref().map(MacosVersion::as_str).or(facts.minimum_macos.as_deref())
}

/// A release as templates show it.
pub(crate) fn release_view(release: &Release, base_url: &BaseUrl) -> Value {
    let anchor = anchor(release);
    json!({
        "build": release.build_or_version(),
        "version": release.version.as_str(),
        "date": release.published.date(),
        "published_rfc2822": release.published.rfc2822(),
        "published_rfc3339": release.published.rfc3339(),
        "length": release.length,
        "size": size(release.length),
        "sha256": release.sha256.hex(),
        "signature": release.signature.as_ref().map(Signature::as_str),
        "file": release.file.to_string(),
        "url": image_url(release, base_url),
        "minimum_macos": release.minimum_macos.as_ref().map(MacosVersion::as_str),
        "prerelease": !release.channel.is_stable(),
        "channel": release.channel.as_str(),
        "notes": nest_markdown(release.notes.as_str(), &anchor),
        "notes_html": markdown_to_html(release.notes.as_str()),
        "anchor": anchor,
    })
}

/// The withdrawn releases of which the makers said why, the highest version first.
fn withdrawn(releases: &Releases) -> impl Iterator<Item = (&Release, Timestamp, &Reason)> {
    releases.iter().filter_map(|release| {
        let Withdrawal { at, reason } = release.withdrawn.as_ref()?;
        Some((release, *at, reason.as_ref()?))
    })
}

/// The same as templates show it.
pub(crate) fn withdrawn_views(releases: &Releases) -> Vec<Value> {
    let view = |(release, at, reason): (&Release, Timestamp, &Reason)| {
        let reason = nest_markdown(reason.as_str(), &anchor(release));
        json!({ "version": release.version.as_str(), "date": at.date(), "reason": reason.trim_end() })
    };
    withdrawn(releases).map(view).collect()
}

/// The URL of the image of this version.
pub(crate) fn image_url(release: &Release, base_url: &BaseUrl) -> String {
    release.external_url.clone().unwrap_or_else(|| base_url.to(&image_path(&release.file)))
}

/// Where visitors read of an available release.
pub(crate) fn page_url(release: &Release, base_url: &BaseUrl) -> String {
    base_url.to(&format!("{}#{}", PageName::Releases.path(), anchor(release)))
}

/// The id of the release's heading on the releases page. With all three numbers, so that no two versions have the same.
fn anchor(release: &Release) -> String {
    format!("v{}", release.version.key().replace('.', "-"))
}

pub(super) fn image_path(file: impl Display) -> String {
    format!("/releases/{file}")
}

/// The sample disk image, which a local preview hands out until a release is published. It is called a sample wherever it
/// is offered. `Serialize` produces the form of `/releases.json` and of the templates.
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
        let bytes = content.bytes("sample.dmg")?;
        let (file, length) = (sample_file_name(app_name), bytes.len() as u64);
        Ok(Some(Self {
            note: Self::NOTE,
            url: base_url.to(&image_path(&file)),
            file,
            length,
            size: size(length),
            sha256: Sha256::of(&bytes).hex(),
            bytes,
        }))
    }
}

pub(super) fn sample_file_name(app_name: &str) -> String {
    format!("{}-sample.dmg", file_stem(app_name))
}

/// Formats a size as the Finder does: a megabyte is a million bytes.
pub(crate) fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_000 => return format!("{bytes} bytes"),
        1_000..1_000_000 => (1_000, "KB"),
        1_000_000..1_000_000_000 => (1_000_000, "MB"),
        _ => (1_000_000_000, "GB"),
    };
    let tenths = bytes / (unit / 10);
    match tenths % 10 {
        0 => format!("{} {name}", tenths / 10),
        rest => format!("{}.{rest} {name}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_formatted_as_in_the_finder() {
        let sizes = [0, 999, 1_000, 1_250_000, 48_000_000, 1_073_741_824].map(size);
        assert_eq!(sizes, ["0 bytes", "999 bytes", "1 KB", "1.2 MB", "48 MB", "1 GB"]);
    }
}

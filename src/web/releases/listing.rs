//! Release lists for JSON, feeds and templates.

use serde::Serialize;

use super::sample::Sample;
use super::size::size;
use crate::domain::base_url::BaseUrl;
use crate::domain::release::{Release, Releases};
use crate::domain::version::MacosVersion;
use crate::site::nest_markdown;

pub(crate) const RELEASES_JSON: &str = "/releases.json";

/// `/releases.json`: the available releases, the highest version first.
#[derive(Serialize)]
pub(super) struct ReleaseList<'a> {
    #[serde(rename = "app")]
    app_name: &'a str,
    latest: Option<String>,
    releases: Vec<ListedRelease<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<&'a Sample>,
}

#[derive(Serialize)]
struct ListedRelease<'a> {
    version: String,
    date: String,
    length: u64,
    sha256: String,
    minimum_macos: Option<&'a str>,
    prerelease: bool,
    notes: &'a str,
    url: String,
}

/// A release as templates show it.
#[derive(Debug, Serialize)]
pub(crate) struct ReleaseView {
    pub version: String,
    pub date: String,
    length: u64,
    pub size: String,
    pub sha256: String,
    anchor: String,
    file: String,
    url: String,
    minimum_macos: Option<String>,
    prerelease: bool,
    notes: String,
}

impl<'a> ReleaseList<'a> {
    pub(super) fn new(
        app_name: &'a str,
        releases: &'a Releases,
        sample: Option<&'a Sample>,
        base_url: &BaseUrl,
    ) -> Self {
        let listed = releases.available().map(|release| ListedRelease {
            version: release.version.to_string(),
            date: release.published.rfc3339(),
            length: release.length,
            sha256: release.sha256.hex(),
            minimum_macos: release.minimum_macos.as_ref().map(MacosVersion::as_str),
            prerelease: release.prerelease,
            notes: release.notes.as_str(),
            url: url(release, base_url),
        });
        let latest = releases.newest().map(|release| release.version.to_string());
        Self { app_name, latest, releases: listed.collect(), sample }
    }
}

impl ReleaseView {
    fn new(release: &Release, base_url: &BaseUrl) -> Self {
        Self {
            version: release.version.to_string(),
            date: release.published.date(),
            length: release.length,
            size: size(release.length),
            sha256: release.sha256.hex(),
            anchor: anchor(release),
            file: release.file.to_string(),
            url: url(release, base_url),
            minimum_macos: release.minimum_macos.as_ref().map(|system| system.as_str().to_owned()),
            prerelease: release.prerelease,
            notes: nest_markdown(release.notes.as_str(), &anchor(release)),
        }
    }
}

pub(crate) fn newest(releases: &Releases, base_url: &BaseUrl) -> Option<ReleaseView> {
    releases.newest().map(|release| ReleaseView::new(release, base_url))
}

pub(crate) fn available(releases: &Releases, base_url: &BaseUrl) -> Vec<ReleaseView> {
    releases.available().map(|release| ReleaseView::new(release, base_url)).collect()
}

/// The URL of the image of this version.
pub(super) fn url(release: &Release, base_url: &BaseUrl) -> String {
    release.external_url.clone().unwrap_or_else(|| base_url.to(&path(release)))
}

pub(super) fn path(release: &Release) -> String {
    format!("/releases/{}", release.file)
}

/// The id of the release's heading on the releases page.
pub(super) fn anchor(release: &Release) -> String {
    format!("v{}", release.version.to_string().replace('.', "-"))
}

//! The releases as feeds: Sparkle's appcast, and Atom for feed readers.

use serde::Serialize;

use super::listing::{anchor, url};
use crate::domain::base_url::BaseUrl;
use crate::domain::release::{Release, Releases, Signature};
use crate::domain::version::MacosVersion;
use crate::site::{PageName, Site, SiteFailure, markdown_to_html};

pub(crate) const APPCAST: &str = "/appcast.xml";
pub(crate) const ATOM: &str = "/releases.atom";

/// The context of both templates.
#[derive(Serialize)]
pub(super) struct Feed<'a> {
    app_name: &'a str,
    tagline: &'a str,
    maker: &'a str,
    page_url: String,
    atom_url: String,
    updated: String,
    releases: Vec<FeedRelease<'a>>,
}

#[derive(Serialize)]
struct FeedRelease<'a> {
    version: String,
    build: String,
    minimum_macos: Option<&'a str>,
    prerelease: bool,
    published_rfc2822: String,
    published_rfc3339: String,
    notes_html: String,
    anchor: String,
    url: String,
    length: u64,
    signature: Option<&'a str>,
}

impl<'a> Feed<'a> {
    pub(super) fn new(site: &'a Site, releases: &'a Releases, base_url: &BaseUrl) -> Self {
        let latest = releases.available().map(|release| release.published.rfc3339()).max();
        let page_updated = &site.page(PageName::Releases).last_updated;
        Self {
            app_name: &site.facts.name,
            tagline: &site.facts.tagline,
            maker: &site.facts.maker,
            page_url: base_url.to(PageName::Releases.path()),
            atom_url: base_url.to(ATOM),
            updated: latest.unwrap_or_else(|| format!("{page_updated}T00:00:00Z")),
            releases: releases.available().map(|release| FeedRelease::new(release, base_url)).collect(),
        }
    }

    /// Renders what Sparkle 2 reads to find updates. Prereleases are in the channel `beta`, which an
    /// app must ask for.
    pub(super) fn appcast(&self, site: &Site) -> Result<String, SiteFailure> {
        site.render_str("appcast.xml", include_str!("appcast.xml"), self)
    }

    pub(super) fn atom(&self, site: &Site) -> Result<String, SiteFailure> {
        site.render_str("releases.atom", include_str!("releases.atom"), self)
    }
}

impl<'a> FeedRelease<'a> {
    fn new(release: &'a Release, base_url: &BaseUrl) -> Self {
        let version = release.version.to_string();
        Self {
            build: release.build.as_ref().map_or_else(|| version.clone(), |build| build.as_str().to_owned()),
            version,
            minimum_macos: release.minimum_macos.as_ref().map(MacosVersion::as_str),
            prerelease: release.prerelease,
            published_rfc2822: release.published.rfc2822(),
            published_rfc3339: release.published.rfc3339(),
            notes_html: markdown_to_html(release.notes.as_str()),
            anchor: anchor(release),
            url: url(release, base_url),
            length: release.length,
            signature: release.signature.as_ref().map(Signature::as_str),
        }
    }
}

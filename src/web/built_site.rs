//! Everything that is built from the site's files and the published releases, ready to be sent.

use std::collections::HashMap;

use http::HeaderValue;

use super::discovery::asset_file;
use super::endpoints::endpoints;
use super::headers::IMMUTABLE;
use super::letters::letter_files;
use super::representation::UnencodedResponse;
use super::served::Served;
use super::{discovery, reference};
use crate::actions::NewestImage;
use crate::domain::letters::ArchivedLetter;
use crate::domain::network::BaseUrl;
use crate::domain::releases::Releases;
use crate::site::{Asset, Assets, Content, Policies, Site, SiteFacts, SiteFailure, SiteInput};
use crate::web::mcp::results::ToolResults;
use crate::web::mcp::server_info::ServerInfo;
use crate::web::releases::feeds::{Sample, release_files};

/// Where the download form of the home page leads.
pub(crate) const DOWNLOAD_STARTED_PATH: &str = "/download/started";
/// Where the contact form leads.
pub(crate) const CONTACT_SENT_PATH: &str = "/contact/sent";

/// Built at startup, and again when the files or the releases change.
#[derive(Debug)]
pub(crate) struct BuiltSite {
    pub site: Site,
    pub server_info: ServerInfo,
    pub tool_results: ToolResults,
    /// The paths of the JSON endpoints.
    pub endpoint_paths: Vec<&'static str>,
    /// By path. Pages of the last build may still refer to its assets.
    pub served: HashMap<String, Served>,
    pub not_found: Served,
    /// Asks whether to confirm an opt-in.
    pub confirm: Served,
    /// Says that the opt-in is confirmed.
    pub confirmed: Served,
    /// Says how to ask again, because the link is unknown or has expired.
    pub confirm_expired: Served,
    /// Asks whether to unsubscribe from the monthly email.
    pub unsubscribe: Served,
    /// Confirms that the reader is unsubscribed.
    pub unsubscribed: Served,
    /// Where the unsubscribe link of a test copy leads.
    pub test_copy: Served,
    /// Confirms that the address is suppressed.
    pub never_again: Served,
}

impl BuiltSite {
    /// `before` is the last build.
    pub(crate) fn new(
        content: &Content,
        base_url: &BaseUrl,
        newest_image: &NewestImage,
        releases: &Releases,
        letters: &[ArchivedLetter],
        policies: &Policies,
        before: Option<&Self>,
    ) -> Result<Self, SiteFailure> {
        let before = before.map(|before| &*before.site.assets);
        let facts = SiteFacts::read(content)?;
        let sample = Sample::if_offered(content, &facts.name, base_url, newest_image, releases)?;
        let endpoints = endpoints(&facts, policies);
        let reference =
            reference::build(&facts, &endpoints, base_url, newest_image, releases, sample.as_ref(), policies);
        let input = SiteInput { policies, base_url, reference: &reference, letters, is_taken: &is_taken, before };
        let mut site = Site::build(content, facts, &input)?;
        let server_info = ServerInfo::new(&site, base_url);
        let mut served: HashMap<_, _> = before.into_iter().flat_map(Assets::iter).map(permanent_asset).collect();
        served.extend(site.assets.iter().map(stable_asset));
        served.extend(site.assets.iter().map(permanent_asset));
        served.extend(pages(&site, base_url));
        let mut files = discovery::files(&site, base_url, &endpoints, policies)?;
        files.extend(release_files(&site, base_url, releases, sample.as_ref())?);
        files.extend(letter_files(&site, base_url)?);
        served.extend(files.into_iter().map(|(path, file)| (path, Served::File(file.into()))));
        let cors_files = discovery::cors_files(base_url, &endpoints, &server_info).into_iter();
        served.extend(cors_files.map(|(path, file)| (path.to_owned(), Served::CorsFile(file.into()))));
        let is_of_routes = |path: &str| is_taken(path) && !path.starts_with("/assets/");
        site.check_links(content, base_url, releases, &|path| served.contains_key(path) || is_of_routes(path));
        Ok(Self {
            served,
            not_found: Served::not_found(&site.not_found),
            confirm: Served::private_page(&site.confirm),
            confirmed: Served::private_page(&site.confirmed),
            confirm_expired: Served::not_found(&site.confirm_expired),
            unsubscribe: Served::private_page(&site.unsubscribe),
            unsubscribed: Served::private_page(&site.unsubscribed),
            test_copy: Served::private_page(&site.test_copy),
            never_again: Served::private_page(&site.never_again),
            tool_results: ToolResults::new(&site.facts, base_url, newest_image, releases, sample.as_ref()),
            endpoint_paths: endpoints.iter().map(|endpoint| endpoint.path).collect(),
            server_info,
            site,
        })
    }
}

/// The first segments of paths that belong to the service.
const RESERVED: [&str; 10] =
    [".well-known", "api", "assets", "confirm", "contact", "desk", "download", "letters", "mcp", "unsubscribe"];
/// Files of the service at the root.
const FILES: [&str; 11] = [
    "/agents.md",
    "/appcast.xml",
    "/favicon.ico",
    "/letters.atom",
    "/llms.txt",
    "/openapi.json",
    "/releases.atom",
    "/releases.json",
    "/robots.txt",
    "/sitemap.md",
    "/sitemap.xml",
];

/// Whether a path belongs to the service, so that no page and no redirect of the makers can have it.
fn is_taken(path: &str) -> bool {
    let first = path.split('/').nth(1).unwrap_or_default();
    let is_after_form = [DOWNLOAD_STARTED_PATH, CONTACT_SENT_PATH].iter().any(|after| path.ends_with(after));
    RESERVED.contains(&first) || FILES.contains(&path) || path.starts_with("/releases/") || is_after_form
}

/// An asset at the path with the hash of its content.
fn permanent_asset(asset: &Asset) -> (String, Served) {
    let file = UnencodedResponse { cache_control: IMMUTABLE, ..asset_file(asset) };
    (asset.path.clone(), Served::File(file.into()))
}

fn stable_asset(asset: &Asset) -> (String, Served) {
    (asset.stable_path.clone(), Served::File(asset_file(asset).into()))
}

fn pages(site: &Site, base_url: &BaseUrl) -> HashMap<String, Served> {
    let mut served = HashMap::new();
    for (from, to) in &site.redirects {
        if let Ok(to) = HeaderValue::from_str(to) {
            served.insert(from.clone(), Served::Redirect(to));
        }
    }
    for page in site.pages_and_letters() {
        served.insert(page.address.path.clone(), Served::page(page, base_url));
        served.insert(page.address.markdown_path.clone(), Served::markdown_file(page, base_url));
    }
    for (language, pages) in &site.after_forms {
        served.insert(site.path(language, DOWNLOAD_STARTED_PATH), Served::private_page(&pages.download_started));
        served.insert(site.path(language, CONTACT_SENT_PATH), Served::private_page(&pages.contact_sent));
    }
    served
}

/// Builds every page and file to check that the site is complete. Returns how many there are, and the site.
pub fn try_build(
    content: &Content,
    base_url: &BaseUrl,
    newest_image: &NewestImage,
    releases: &Releases,
    letters: &[ArchivedLetter],
    policies: &Policies,
) -> Result<(usize, Site), SiteFailure> {
    let built = BuiltSite::new(content, base_url, newest_image, releases, letters, policies, None)?;
    Ok((built.served.len(), built.site))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::letters::{ImageName, Letter};
    use crate::domain::time::Timestamp;
    use crate::web::routes::routes;

    #[test]
    fn every_address_of_the_service_is_taken() {
        let content = Content::default();
        let base_url = BaseUrl::parse("https://troupe.example").unwrap();
        let newest_image = NewestImage::choose(None, &base_url, "Troupe");
        let policies = Policies {
            ai_train: false,
            confirm_updates: false,
            letters_archive: true,
            keep_messages: None,
            forwards_messages: false,
            records_bounces: false,
            keeps_waitlist: true,
            bucket_host: None,
        };
        let gif = |_: &ImageName| Ok(b"GIF89a\x01\0\x01\0".to_vec());
        let letter = Letter::parse_with_images("# New\n\n![a](b.gif)\n", gif).unwrap();
        let letters = [ArchivedLetter { letter, sent: Timestamp::parse("2026-11-15T00:00:00Z").unwrap() }];
        let releases = Releases::default();
        let built = BuiltSite::new(&content, &base_url, &newest_image, &releases, &letters, &policies, None).unwrap();
        let pages: Vec<_> =
            built.site.pages().iter().flat_map(|page| [&page.address.path, &page.address.markdown_path]).collect();
        let routes = routes().map(|(path, _)| path.to_owned());
        for path in built.served.keys().chain(&routes).filter(|path| !pages.contains(path)) {
            assert!(is_taken(path), "{path}");
        }
        assert!(!is_taken("/help/install") && !is_taken("/apiary") && !is_taken("/agents"));
    }
}

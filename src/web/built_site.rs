//! Everything that is built from the site's files and the published releases, ready to be sent.

use std::collections::HashMap;

use super::served::Served;
use super::{discovery, reference};
use crate::actions::NewestImage;
use crate::domain::network::BaseUrl;
use crate::domain::releases::Releases;
use crate::site::{Content, PageName, Policies, Site, SiteFacts, SiteFailure};
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
    /// By path.
    pub served: HashMap<String, Served>,
    pub not_found: Served,
    /// Asks whether to confirm an opt-in.
    pub confirm: Served,
    /// Says that the opt-in is confirmed.
    pub confirmed: Served,
    /// Asks whether to unsubscribe from the monthly email.
    pub unsubscribe: Served,
    /// Confirms that the reader is unsubscribed.
    pub unsubscribed: Served,
    /// Confirms that the address is suppressed.
    pub never_again: Served,
}

impl BuiltSite {
    pub(crate) fn new(
        content: &Content,
        base_url: &BaseUrl,
        newest_image: &NewestImage,
        releases: &Releases,
        policies: &Policies,
    ) -> Result<Self, SiteFailure> {
        let facts = SiteFacts::read(content)?;
        let sample = Sample::if_offered(content, &facts.name, base_url, newest_image, releases)?;
        let reference = reference::build(&facts.name, base_url, newest_image, releases, sample.as_ref(), policies);
        let site = Site::build(content, facts, policies, base_url, &reference)?;
        let server_info = ServerInfo::new(&site, base_url);
        let mut served = pages(&site, base_url);
        let mut files = discovery::files(&site, base_url, policies)?;
        files.extend(release_files(&site, base_url, releases, sample.as_ref())?);
        served.extend(files.into_iter().map(|(path, file)| (path, Served::File(file.into()))));
        let cors_files = discovery::cors_files(base_url, &server_info).into_iter();
        served.extend(cors_files.map(|(path, file)| (path.to_owned(), Served::CorsFile(file.into()))));
        Ok(Self {
            served,
            not_found: Served::not_found(&site.not_found),
            confirm: Served::private_page(&site.confirm),
            confirmed: Served::private_page(&site.confirmed),
            unsubscribe: Served::private_page(&site.unsubscribe),
            unsubscribed: Served::private_page(&site.unsubscribed),
            never_again: Served::private_page(&site.never_again),
            tool_results: ToolResults::new(&site.facts, base_url, newest_image, releases, sample.as_ref()),
            server_info,
            site,
        })
    }
}

fn pages(site: &Site, base_url: &BaseUrl) -> HashMap<String, Served> {
    let mut served = HashMap::new();
    for name in PageName::ALL {
        let page = site.page(name);
        served.insert(name.path().to_owned(), Served::page(name, page, base_url));
        served.insert(name.markdown_path().to_owned(), Served::markdown_file(name, page, base_url));
    }
    served.insert(DOWNLOAD_STARTED_PATH.to_owned(), Served::private_page(&site.download_started));
    served.insert(CONTACT_SENT_PATH.to_owned(), Served::private_page(&site.contact_sent));
    served
}

/// Builds every page and file to check that the site is complete, and returns how many there are.
pub fn try_build(
    content: &Content,
    base_url: &BaseUrl,
    newest_image: &NewestImage,
    releases: &Releases,
    policies: &Policies,
) -> Result<usize, SiteFailure> {
    Ok(BuiltSite::new(content, base_url, newest_image, releases, policies)?.served.len())
}

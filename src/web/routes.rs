//! The whole route table: what is served where.

use std::collections::HashMap;

use axum::Router;
use axum::routing::{any, get};

use super::app::App;
use super::mcp::ServerInfo;
use super::pages::{self, Served};
use super::{api, discovery, forms, mcp, releases, unsubscribe};
use crate::actions::NewestImage;
use crate::domain::base_url::BaseUrl;
use crate::domain::release::Releases;
use crate::domain::unsubscribe::UNSUBSCRIBE_PATH;
use crate::site::{PageName, Site};

/// Addresses whose answer is made anew for each request.
pub fn router(app: &App) -> Router {
    Router::new()
        // Callers' programs
        .route(api::DOWNLOAD.path, any(api::download))
        .route(api::WAITLIST.path, any(api::waitlist))
        .route(api::CONTACT.path, any(api::contact))
        .route("/api/", any(api::unknown))
        .route("/api/{*rest}", any(api::unknown))
        .route(mcp::PATH, any(mcp::endpoint))
        // Browsers without JavaScript
        .route(forms::DOWNLOAD, any(forms::download))
        .route(PageName::Contact.path(), any(forms::contact))
        // Downloads
        .route(releases::LATEST, get(releases::latest))
        .route(releases::IMAGE, get(releases::image))
        // Readers of the monthly email, and their mail programs
        .route(unsubscribe::ROUTE, any(unsubscribe::unsubscribe_page))
        // Scanners
        .route(discovery::SECURITY_TXT, get(discovery::security_txt))
        .fallback(pages::unknown)
        .with_state(app.clone())
}

/// Addresses whose answer is made once, at the start.
pub(crate) fn served(
    site: &Site,
    base_url: &BaseUrl,
    server_info: &ServerInfo,
    ai_train: bool,
    newest_image: &NewestImage,
    releases: &Releases,
) -> HashMap<String, Served> {
    let mut served = HashMap::new();
    for name in PageName::ALL {
        let page = site.page(name);
        served.insert(name.path().to_owned(), Served::page(name, page, base_url));
        served.insert(name.markdown_path().to_owned(), Served::markdown_twin(name, page, base_url));
    }
    served.insert(forms::DOWNLOAD_STARTED.to_owned(), Served::after_form(&site.download_started));
    served.insert(forms::CONTACT_SENT.to_owned(), Served::after_form(&site.contact_sent));
    for (path, draft) in discovery::files(site, base_url, ai_train) {
        served.insert(path, Served::File(draft.into()));
    }
    for (path, draft) in releases::files(site, base_url, newest_image, releases) {
        served.insert(path, Served::File(draft.into()));
    }
    for (path, draft) in discovery::open_files(base_url, server_info) {
        served.insert(path.to_owned(), Served::OpenFile(draft.into()));
    }
    served
}

/// What the log calls a request: the address, where it is one of ours, and nothing of it otherwise.
pub(crate) fn name_of<'a>(app: &App, path: &'a str) -> &'a str {
    let known = [
        api::DOWNLOAD.path,
        api::WAITLIST.path,
        api::CONTACT.path,
        mcp::PATH,
        forms::DOWNLOAD,
        discovery::SECURITY_TXT,
    ];
    if path.starts_with("/releases/") {
        "/releases/*"
    } else if known.contains(&path) || app.built().served.contains_key(path) {
        path
    } else if path.starts_with("/api/") {
        "/api/*"
    } else if path.starts_with(UNSUBSCRIBE_PATH) {
        unsubscribe::NAME
    } else {
        "*"
    }
}

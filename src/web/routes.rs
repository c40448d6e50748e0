//! The route table: every path whose response is made per request. Pages and files are in `built_site`.

use axum::extract::Request;
use axum::response::Response;
use http::Method;

use super::app::App;
use super::endpoints::{CONTACT, DOWNLOAD, WAITLIST};
use super::mcp::{self, server_info};
use super::response::method_not_allowed;
use super::{api, confirmation, forms, pages, releases, security_txt, unsubscribe};
use crate::domain::confirmation::CONFIRMATION_PATH;
use crate::domain::unsubscribe::UNSUBSCRIBE_PATH;
use crate::site::PageName;

const LATEST_IMAGE_PREFIX: &str = "/releases/latest/";
const IMAGE_PREFIX: &str = "/releases/";
const API_PREFIX: &str = "/api/";

/// What responds to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    // JSON API and MCP
    Download,
    Waitlist,
    Contact,
    UnknownEndpoint,
    Mcp,
    // Forms, for browsers without JavaScript
    DownloadForm,
    ContactForm,
    // Disk images
    LatestImage,
    Image,
    /// Readers of the monthly email, and their mail clients.
    Unsubscribe,
    /// People who confirm their opt-in.
    Confirmation,
    /// Security researchers.
    SecurityTxt,
    /// All other paths.
    Page,
}

impl Route {
    const WITHOUT_PARAMETERS: [Self; 7] = [
        Self::Download,
        Self::Waitlist,
        Self::Contact,
        Self::Mcp,
        Self::DownloadForm,
        Self::ContactForm,
        Self::SecurityTxt,
    ];

    /// The path, with names in braces for its parameters: for the log and the metrics, which never get a path as it was sent.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Download => DOWNLOAD.path,
            Self::Waitlist => WAITLIST.path,
            Self::Contact => CONTACT.path,
            Self::UnknownEndpoint => "/api/{*path}",
            Self::Mcp => server_info::PATH,
            Self::DownloadForm => "/download",
            Self::ContactForm => PageName::Contact.path(),
            Self::LatestImage => "/releases/latest/{file}",
            Self::Image => "/releases/{file}",
            Self::Unsubscribe => "/unsubscribe/{token}",
            Self::Confirmation => "/confirm/{token}",
            Self::SecurityTxt => security_txt::PATH,
            Self::Page => "*",
        }
    }

    pub(super) fn of(path: &str) -> Self {
        let is_below = |prefix: &str| {
            path.strip_prefix(prefix).is_some_and(|segment| !segment.is_empty() && !segment.contains('/'))
        };
        if let Some(route) = Self::WITHOUT_PARAMETERS.into_iter().find(|route| route.name() == path) {
            return route;
        }
        if path.starts_with(API_PREFIX) {
            Self::UnknownEndpoint
        } else if is_below(LATEST_IMAGE_PREFIX) {
            Self::LatestImage
        } else if is_below(IMAGE_PREFIX) {
            Self::Image
        } else if is_below(UNSUBSCRIBE_PATH) {
            Self::Unsubscribe
        } else if is_below(CONFIRMATION_PATH) {
            Self::Confirmation
        } else {
            Self::Page
        }
    }

    pub(super) async fn respond(self, app: App, request: Request) -> Response {
        let reads = request.method() == Method::GET || request.method() == Method::HEAD;
        match self {
            Self::Download => api::download(app, request).await,
            Self::Waitlist => api::waitlist(app, request).await,
            Self::Contact => api::contact(app, request).await,
            Self::UnknownEndpoint => api::not_found(&app, &request),
            Self::Mcp => mcp::endpoint::endpoint(app, request).await,
            Self::DownloadForm => forms::download(app, request).await,
            Self::ContactForm => forms::contact(app, request).await,
            Self::LatestImage | Self::Image | Self::SecurityTxt if !reads => method_not_allowed("GET, HEAD"),
            Self::LatestImage => releases::latest(app, request).await,
            // In boxes of their own: they are several times as large as the others, and each request allocates the largest.
            Self::Image => Box::pin(releases::image(app, request)).await,
            Self::Unsubscribe => Box::pin(unsubscribe::unsubscribe_page(app, request)).await,
            Self::Confirmation => Box::pin(confirmation::confirmation_page(app, request)).await,
            Self::SecurityTxt => security_txt::security_txt(&app),
            Self::Page => pages::fallback(&app, &request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_one_segment_that_is_not_empty() {
        for (path, route) in [
            ("/releases/App-1.dmg", Route::Image),
            ("/releases/latest/App.dmg", Route::LatestImage),
            ("/releases/latest", Route::Image),
            ("/releases/", Route::Page),
            ("/releases/latest/", Route::Page),
            ("/releases/a/b", Route::Page),
            ("/releases/latest/a/b", Route::Page),
            ("/unsubscribe/", Route::Page),
            ("/unsubscribe/token", Route::Unsubscribe),
            ("/confirm/", Route::Page),
            ("/confirm/token", Route::Confirmation),
            ("/api/", Route::UnknownEndpoint),
            ("/api/a/b", Route::UnknownEndpoint),
            ("/api", Route::Page),
            ("/mcp", Route::Mcp),
            ("/mcp/", Route::Page),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
    }
}

//! The route table: every path whose response is made per request, by who calls it. Pages and files are in `built_site`.
//!
//! Paths are matched as they were sent, and a parameter is one segment that is not empty.

use axum::Router;
use axum::routing::{any, get};

use super::app::App;
use super::endpoints::{CONTACT, DOWNLOAD, WAITLIST};
use super::mcp::{self, server_info};
use super::response::method_not_allowed;
use super::{api, forms, pages, releases, tokens};
use crate::site::PageName;

pub(super) fn routes() -> Router<App> {
    Router::new()
        // Programs
        .route(DOWNLOAD.path, any(api::download))
        .route(WAITLIST.path, any(api::waitlist))
        .route(CONTACT.path, any(api::contact))
        .route("/api/", any(api::not_found))
        .route("/api/{*path}", any(api::not_found))
        .route(server_info::PATH, any(mcp::endpoint::endpoint))
        // Browsers without JavaScript
        .route("/download", any(forms::download))
        .route(PageName::Contact.path(), any(forms::contact))
        // Visitors and apps that download
        .route("/releases/latest/{file}", get(releases::latest))
        .route("/releases/{file}", get(releases::image))
        // Readers of mail, and their mail clients
        .route("/unsubscribe/{token}", any(tokens::unsubscribe_page))
        .route("/confirm/{token}", any(tokens::confirmation_page))
        // Security researchers
        .route(pages::SECURITY_TXT, get(pages::security_txt))
        .method_not_allowed_fallback(async || method_not_allowed("GET, HEAD"))
        .fallback(pages::fallback)
}

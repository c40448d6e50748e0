//! The route table: every path whose response is made per request, by who calls it. Pages and files are in `built_site`.
//!
//! Paths are matched as they were sent, and a parameter is one segment that is not empty.

use axum::routing::{MethodRouter, any, get};

use super::app::App;
use super::endpoints::{CONTACT, DOWNLOAD, WAITLIST};
use super::{api, desk, forms, mcp, releases, tokens};
use crate::site::PageName;
use crate::web::mcp::server_info;

/// Where disk images are.
pub(super) const IMAGE_ROUTE: &str = "/releases/{file}";

pub(super) fn routes() -> [(&'static str, MethodRouter<App>); 18] {
    [
        // Programs
        (DOWNLOAD.path, any(api::download)),
        (WAITLIST.path, any(api::waitlist)),
        (CONTACT.path, any(api::contact)),
        ("/api/", any(api::not_found)),
        ("/api/{*path}", any(api::not_found)),
        (server_info::PATH, any(mcp::endpoint::endpoint)),
        // Browsers without JavaScript
        ("/download", any(forms::download)),
        (PageName::Contact.path(), any(forms::contact)),
        // Visitors and apps that download
        ("/releases/latest/{file}", get(releases::latest)),
        ("/releases/latest/{channel}/{file}", get(releases::latest_of_channel)),
        (IMAGE_ROUTE, get(releases::image)),
        // Makers, and their programs
        (desk::ROOT, any(desk::public)),
        (desk::PAGE_ROUTE, any(desk::public)),
        (desk::RELEASES, any(desk::public)),
        (desk::RELEASE_ROUTE, any(desk::public)),
        (desk::NOTES_ROUTE, any(desk::public)),
        // Readers of mail, and their mail clients
        ("/unsubscribe/{token}", any(tokens::unsubscribe_page)),
        ("/confirm/{token}", any(tokens::confirmation_page)),
    ]
}

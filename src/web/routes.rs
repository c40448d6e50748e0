//! The route table: every path whose response is made per request. Pages and files are in `built_site`.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get};

use super::app::App;
use super::endpoints::{CONTACT, DOWNLOAD, WAITLIST};
use super::mcp::{self, server_info};
use super::{api, forms, pages, releases, security_txt, unsubscribe};
use crate::site::PageName;

pub fn router(app: &App) -> Router {
    Router::new()
        // JSON API and MCP
        .route(DOWNLOAD.path, any(api::download))
        .route(WAITLIST.path, any(api::waitlist))
        .route(CONTACT.path, any(api::contact))
        .route("/api/", any(api::not_found))
        .route("/api/{*path}", any(api::not_found))
        .route(server_info::PATH, any(mcp::endpoint::endpoint))
        // Forms, for browsers without JavaScript
        .route("/download", any(forms::download))
        .route(PageName::Contact.path(), any(forms::contact))
        // Disk images
        .route("/releases/latest/{file}", get(releases::latest))
        .route("/releases/{file}", get(releases::image))
        // Readers of the monthly email, and their mail clients
        .route("/unsubscribe/{token}", any(unsubscribe::unsubscribe_page))
        // Security researchers
        .route(security_txt::PATH, get(security_txt::security_txt))
        .fallback(pages::fallback)
        .layer(middleware::from_fn(record_route))
        .with_state(app.clone())
}

/// The request extension that records the matched route. It is set before the handler runs, so it is known even if the handler panics.
#[derive(Clone, Debug, Default)]
pub(super) struct MatchedRoute(Arc<OnceLock<MatchedPath>>);

impl MatchedRoute {
    pub(super) fn as_str(&self) -> Option<&str> {
        self.0.get().map(MatchedPath::as_str)
    }
}

async fn record_route(request: Request, next: Next) -> Response {
    let extensions = request.extensions();
    if let (Some(MatchedRoute(route)), Some(path)) = (extensions.get(), extensions.get::<MatchedPath>()) {
        let _ = route.set(path.clone());
    }
    next.run(request).await
}

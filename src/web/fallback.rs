//! What is rendered for each request: `/.well-known/security.txt`, and the fallback for every path that has no route.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::CACHE_CONTROL;

use super::app::App;
use crate::site::PageName;

pub(crate) const SECURITY_TXT: &str = "/.well-known/security.txt";

/// How long a copy stays valid: less than a year, as the RFC recommends.
const VALIDITY: Duration = Duration::from_hours(180 * 24);

/// Responds 404, or for a page or file that was requested with an unsupported method, 405.
pub(crate) async fn fallback(State(app): State<App>, request: Request) -> Response {
    let built = app.built();
    let served = built.served.get(request.uri().path()).unwrap_or(&built.not_found);
    served.respond(request.method(), request.headers())
}

/// RFC 9116. It is rendered for each request, so it never expires.
pub(crate) async fn security_txt(State(app): State<App>) -> Response {
    let base_url = &app.base_url;
    let contact = base_url.to(PageName::Contact.path());
    let expires = app.service.clock.now().after(VALIDITY).rfc3339();
    let text = format!(
        "# Agents: {} says how to report for a person.\nContact: {contact}#security\nExpires: {expires}\nPolicy: {contact}#security-policy\n\
         Preferred-Languages: en\nCanonical: {}\n",
        base_url.to("/llms.txt"),
        base_url.to(SECURITY_TXT),
    );
    ([(CACHE_CONTROL, "public, max-age=86400")], text).into_response()
}

//! What is rendered for each request: `/.well-known/security.txt`, and the fallback for every path that has no route.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use super::app::App;
use crate::site::PageName;

pub(crate) const SECURITY_TXT: &str = "/.well-known/security.txt";

/// How long a copy stays valid if no day is set: less than a year, as the RFC recommends.
const VALIDITY: Duration = Duration::from_hours(180 * 24);

/// Responds 404, or for a page or file that was requested with an unsupported method, 405.
pub(crate) async fn fallback(State(app): State<App>, request: Request) -> Response {
    let built = app.built();
    let served = built.served.get(request.uri().path()).unwrap_or(&built.not_found);
    served.respond(request.method(), request.headers())
}

/// RFC 9116. It expires on the day that `site.toml` sets. Without one it never does, because it is rendered for each request.
pub(crate) async fn security_txt(State(app): State<App>) -> Response {
    let base_url = app.base_url();
    let contact = base_url.to(PageName::Contact.path());
    let expires = match app.built().site.facts.security_txt_expires {
        Some(day) => format!("{}T23:59:59Z", day.date()),
        None => app.service().clock.now().after(VALIDITY).rfc3339(),
    };
    let text = format!(
        "# Agents: {} says how to report for a person.\nContact: {contact}#security\nExpires: {expires}\nPolicy: {contact}#security-policy\n\
         Preferred-Languages: en\nCanonical: {}\n",
        base_url.to("/llms.txt"),
        base_url.to(SECURITY_TXT),
    );
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=86400"));
    response
}

//! `/.well-known/security.txt` (RFC 9116). Made anew for each request, since it must not expire.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::site::PageName;
use crate::web::app::App;

pub(crate) const SECURITY_TXT: &str = "/.well-known/security.txt";

/// How long a copy of the file may be trusted: under a year, as the RFC advises.
const VALID_FOR: Duration = Duration::from_hours(180 * 24);

pub(crate) async fn security_txt(State(app): State<App>) -> Response {
    let base_url = app.base_url();
    let text = format!(
        "Contact: {}\nExpires: {}\nPreferred-Languages: en\nCanonical: {}\n",
        base_url.to(PageName::Contact.path()),
        app.service().clock.now().after(VALID_FOR).rfc3339(),
        base_url.to(SECURITY_TXT),
    );
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=86400"));
    response
}

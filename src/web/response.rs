//! Small responses that several handlers share.

use axum::body::Body;
use axum::response::Response;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

pub(crate) fn text_response(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// JSON for one caller, never cached.
pub(crate) fn json_response(status: StatusCode, json: impl Into<Body>) -> Response {
    let mut response = Response::new(json.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// 405 from a resource that can only be read.
pub(crate) fn read_only() -> Response {
    method_not_allowed("GET, HEAD", "This address takes GET and HEAD only.\n")
}

/// 405 from a page with a form.
pub(crate) fn read_or_post_only() -> Response {
    method_not_allowed("GET, HEAD, POST", "This address takes GET, HEAD and POST.\n")
}

fn method_not_allowed(allow: &'static str, text: &'static str) -> Response {
    let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, text);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

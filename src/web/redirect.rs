//! Redirects to the public URL: from plain HTTP, and from further host names.

use axum::body::Body;
use axum::response::Response;
use http::header::{HOST, LOCATION};
use http::{HeaderValue, Method, Request, StatusCode};

use super::app::App;
use super::log::method_name;
use super::response::text_response;

/// The response of the plain HTTP listener. What was sent in clear must not be repeated silently, so only reads are redirected.
/// It has no HSTS, which browsers ignore over plain HTTP.
pub fn redirect_to_https<B>(app: &App, request: &Request<B>) -> Response {
    let response = if request.method() == Method::GET || request.method() == Method::HEAD {
        redirect(app, request)
    } else {
        let text = format!("This was sent without encryption and is not processed. Use {} instead.\n", app.base_url());
        text_response(StatusCode::FORBIDDEN, text)
    };
    let (method, status) = (method_name(request.method()), response.status().as_u16());
    tracing::info!(method, route = "redirect", status, "request");
    response
}

/// The response to a request for a further host name of the site, or `None` for any other host.
pub(super) fn redirect_host<B>(app: &App, request: &Request<B>) -> Option<Response> {
    let authority = request.uri().authority().map(http::uri::Authority::as_str);
    let host = authority.or_else(|| request.headers().get(HOST)?.to_str().ok())?;
    app.is_further_host(host).then(|| redirect(app, request))
}

/// The same path and query at the public URL.
fn redirect<B>(app: &App, request: &Request<B>) -> Response {
    let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let path = if path.starts_with('/') { path } else { "/" };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    if let Ok(location) = HeaderValue::from_str(&app.base_url().to(path)) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

//! Middleware for every request: the Host check, panic recovery, security headers, metrics and the
//! access log.

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http::header::CONNECTION;
use http::{HeaderValue, Method, Request, StatusCode};
use tokio::time::Instant;

use super::app::App;
use super::headers;
use super::log::method_name;
use super::problem::{ErrorCode, Problem};
use super::response::{catch_panic, text_response};
use super::routes::Route;
use super::served::Served;
use crate::config::test_panic;
use crate::domain::base_url::BaseUrl;
use crate::domain::client::Peer;

/// Responds to a request of this peer and logs it.
pub async fn handle<B>(app: App, peer: Peer, request: Request<B>) -> Response
where
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    let started = Instant::now();
    let (method, uri) = (method_name(request.method()), request.uri().clone());
    let has_body = !request.body().is_end_stream();
    app.note_proxy(peer, request.headers());
    let built = app.built();
    let served = built.served.get_key_value(uri.path());
    let route = served.map_or_else(|| Route::of(uri.path()).name(), |(path, _)| path);
    let respond = respond(&app, served.map(|(_, served)| served), peer, request);
    let mut response = catch_panic(respond, || server_error(app.base_url(), uri.path())).await;
    headers::add_security_headers(response.headers_mut());
    app.hsts().add(response.headers_mut());
    // No handler has read the body, so the connection will be closed: the client must not reuse it.
    if has_body && matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let (status, elapsed) = (response.status().as_u16(), started.elapsed());
    app.metrics().record_request(route, status, elapsed);
    let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    tracing::info!(method, route, status, micros, "request");
    response
}

/// Reads of pages and files need no route.
async fn respond<B>(app: &App, served: Option<&Served>, peer: Peer, mut request: Request<B>) -> Response
where
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    test_panic("request");
    if !headers::has_one_host(request.version(), request.headers()) {
        return text_response(StatusCode::BAD_REQUEST, "Send exactly one Host header.\n");
    }
    if !request.uri().path().starts_with('/') {
        return text_response(StatusCode::BAD_REQUEST, "The request target must start with a slash.\n");
    }
    if let Some(served) = served
        && (request.method() == Method::GET || request.method() == Method::HEAD)
    {
        return served.respond(request.method(), request.headers());
    }
    request.extensions_mut().insert(peer);
    let route = Route::of(request.uri().path());
    // In a box of its own, so that the future of a page, which every connection has room for, is small.
    Box::pin(route.respond(app.clone(), request.map(Body::new))).await
}

fn server_error(base_url: &BaseUrl, path: &str) -> Response {
    Problem::new(ErrorCode::ServerError, "The service failed to process the request.").respond(base_url, path)
}

//! Middleware for every request: the Host check, panic recovery, security headers, metrics and the
//! access log.

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http::header::CONNECTION;
use http::{HeaderValue, Method, Request, StatusCode};
use tokio::time::Instant;
use tower::ServiceExt;

use super::app::App;
use super::headers;
use super::log::method_name;
use super::problem::{ErrorCode, Problem};
use super::response::{catch_panic, text_response};
use super::routes::MatchedRoute;
use super::served::Served;
use crate::config::test_panic;
use crate::domain::base_url::BaseUrl;
use crate::domain::client::Peer;

/// The route of a request that matched none.
const UNMATCHED: &str = "*";

/// Responds to a request of this peer and logs it.
pub async fn handle<B>(app: App, router: Router, peer: Peer, request: Request<B>) -> Response
where
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    let started = Instant::now();
    let (method, uri) = (method_name(request.method()), request.uri().clone());
    let has_body = !request.body().is_end_stream();
    app.note_proxy(peer, request.headers());
    let built = app.built();
    let served = built.served.get_key_value(uri.path());
    let mut matched = None;
    let respond = respond(served.map(|(_, served)| served), router, peer, request, &mut matched);
    let mut response = catch_panic(respond, || server_error(app.base_url(), uri.path())).await;
    headers::add_security_headers(response.headers_mut());
    app.hsts().add(response.headers_mut());
    // No handler has read the body, so the connection will be closed: the client must not reuse it.
    if has_body && matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    // Never the path as the caller sent it.
    let matched = matched.as_ref().and_then(MatchedRoute::as_str);
    let route = served.map(|(path, _)| path.as_str()).or(matched).unwrap_or(UNMATCHED);
    let (status, elapsed) = (response.status().as_u16(), started.elapsed());
    app.metrics().record_request(route, status, elapsed);
    tracing::info!(method, route, status, micros = elapsed.as_micros(), "request");
    response
}

/// Reads of pages and files bypass the router. For other requests, `matched` will have the route.
async fn respond<B>(
    served: Option<&Served>,
    router: Router,
    peer: Peer,
    mut request: Request<B>,
    matched: &mut Option<MatchedRoute>,
) -> Response
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
    request.extensions_mut().insert(matched.insert(MatchedRoute::default()).clone());
    match router.oneshot(request.map(Body::new)).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

fn server_error(base_url: &BaseUrl, path: &str) -> Response {
    Problem::new(ErrorCode::ServerError, "The service failed to process the request.").respond(base_url, path)
}

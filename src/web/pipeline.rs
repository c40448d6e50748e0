//! Middleware for every request: the Host check, panic recovery, security headers, metrics and the
//! access log.

use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures_util::future::{Either, ready};
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, STRICT_TRANSPORT_SECURITY};
use http::{HeaderValue, Method, StatusCode};
use tokio::time::Instant;
use tower_service::Service as _;

use super::allowed_methods::{READ, method_not_allowed};
use super::app::App;
use super::fallback::busy_page;
use super::forms::FORM_PATHS;
use super::headers::PRIVATE;
use super::limits::OverLimit;
use super::log::{method_name, micros};
use super::mcp::server_info;
use super::negotiate::{PageFormat, page_format};
use super::problem::{ErrorCode, Problem};
use super::redirect::redirect_host;
use super::releases::feeds::APPCAST;
use super::representation::MARKDOWN;
use super::response::{catch_panic, catch_panic_in};
use super::routes::{IMAGE_ROUTE, routes};
use super::{fallback, headers};
use crate::config::test_panic;
use crate::domain::network::{BaseUrl, Peer};

/// How the log and the metrics name paths that have no route. They never get a path as it was sent.
const UNKNOWN_ROUTE: &str = "*";

/// The routes of the public listener.
///
/// The names of routes are matched once more for the log. axum would tell them only to a layer around the handlers, which boxes
/// every request once more.
#[derive(Clone, Debug)]
pub struct Router {
    axum: axum::Router,
    names: Arc<matchit::Router<&'static str>>,
}

pub fn router(app: &App) -> Router {
    let (mut axum, mut names) = (axum::Router::new(), matchit::Router::new());
    for (path, handler) in routes() {
        axum = axum.route(path, handler);
        // A conflict with another route: axum panics at it.
        let _ = names.insert(path, path);
    }
    let axum = axum.method_not_allowed_fallback(async || method_not_allowed(READ)).fallback(fallback::fallback);
    Router { axum: axum.with_state(app.clone()), names: Arc::new(names) }
}

/// Responds to a request of this peer and logs it. Pages and files are ready at once; all else takes the way of `router`.
pub fn handle<B>(
    app: &App,
    router: &Router,
    peer: Peer,
    mut request: http::Request<B>,
) -> impl Future<Output = Response> + Send + use<B>
where
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    app.limits.log_unconfigured_proxy(peer, request.headers());
    if request.extensions().get::<OverLimit>().is_none()
        && let Some(response) = read_page(app, &request)
    {
        return Either::Left(ready(response));
    }
    request.extensions_mut().insert(peer);
    Either::Right(Box::pin(respond_by_route(app.clone(), router.clone(), request.map(Body::new))))
}

/// Responds if the request reads a page or file.
fn read_page<B: HttpBody>(app: &App, request: &http::Request<B>) -> Option<Response> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return None;
    }
    let exchange = RequestRecord::begin(request);
    let built = app.built();
    let (path, served) = built.served.get_key_value(request.uri().path())?;
    let respond = || {
        test_panic("request");
        redirect_or_refuse(app, request)
            .map_or_else(|| served.read(request.method(), request.headers()), |response| (response, None))
    };
    let (response, reading) = catch_panic(respond, || (server_error(&app.base_url, path), None));
    if request.method() == Method::GET && matches!(response.status(), StatusCode::OK | StatusCode::NOT_MODIFIED) {
        match reading {
            Some(reading) => app.count_read(reading, request.headers()),
            None if path == APPCAST => app.count_update_check(request),
            None => {}
        }
    }
    Some(exchange.end(app, path, response))
}

/// Counts and logs a request that was answered with this status because its head could not be read.
pub fn record_refused_head(app: &App, status: StatusCode) {
    let record = RequestRecord { started: Instant::now(), method: "other", has_body: false };
    let mut response = Response::default();
    *response.status_mut() = status;
    record.end(app, UNKNOWN_ROUTE, response);
}

/// Responds if the client has too many requests in flight. The API, MCP and forms, which have limits of their own, do it themselves,
/// each in its format.
fn refuse_in_flight(app: &App, request: &Request) -> Option<Response> {
    let over_limit = request.extensions().get::<OverLimit>()?;
    let path = request.uri().path();
    let is_form = request.method() == Method::POST && FORM_PATHS.contains(&path);
    if is_form || path.starts_with("/api/") || path == server_info::PATH {
        return None;
    }
    let problem = app.limits.refuse(over_limit.clone());
    Some(match page_format(request.headers()) {
        PageFormat::Markdown => {
            let headers = [(CONTENT_TYPE, MARKDOWN)];
            (problem.code.status(), headers, PRIVATE, problem.retry_after(), problem.detail + "\n").into_response()
        }
        PageFormat::Html | PageFormat::Neither => busy_page(app, &problem, None),
    })
}

/// Responds to what is not a read of a page or file.
async fn respond_by_route(app: App, mut router: Router, request: Request) -> Response {
    let exchange = RequestRecord::begin(&request);
    let uri = request.uri().clone();
    let respond = async {
        test_panic("request");
        if let Some(response) = redirect_or_refuse(&app, &request).or_else(|| refuse_in_flight(&app, &request)) {
            return response;
        }
        let Ok(mut response) = router.axum.call(request).await;
        if response.status() == StatusCode::NOT_MODIFIED {
            // The router adds a length of zero, but it would have to be that of the whole file (RFC 9110, section 8.6).
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        response
    };
    let response = catch_panic_in(respond, || server_error(&app.base_url, uri.path())).await;
    let built = app.built();
    let served = || built.served.get_key_value(uri.path()).map(|(path, _)| path.as_str());
    let route = router.names.at(uri.path()).ok().map(|route| *route.value).or_else(served);
    exchange.end(&app, route.unwrap_or(UNKNOWN_ROUTE), response)
}

/// Returns the response if the request names no host, several, another one of the site, or no path.
fn redirect_or_refuse<B>(app: &App, request: &http::Request<B>) -> Option<Response> {
    if !headers::has_one_host(request.version(), request.headers()) {
        return Some((StatusCode::BAD_REQUEST, "Send exactly one Host header.\n").into_response());
    }
    if !request.uri().path().starts_with('/') {
        return Some((StatusCode::BAD_REQUEST, "The request target must start with a slash.\n").into_response());
    }
    redirect_host(app, request)
}

/// What is known of a request before there is a response.
struct RequestRecord {
    started: Instant,
    method: &'static str,
    has_body: bool,
}

impl RequestRecord {
    fn begin<B: HttpBody>(request: &http::Request<B>) -> Self {
        let has_body = !request.body().is_end_stream();
        Self { started: Instant::now(), method: method_name(request.method()), has_body }
    }

    /// Completes the response and records the request.
    fn end(self, app: &App, route: &str, mut response: Response) -> Response {
        let Self { started, method, has_body } = self;
        headers::add_security_headers(response.headers_mut());
        if let Some(hsts) = &app.hsts {
            response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, hsts.clone());
        }
        // No handler has read the body, so an HTTP/1.1 connection will be closed: the client must not reuse it.
        if has_body && matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if app.content.is_worked_on() && route != IMAGE_ROUTE {
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        let (status, elapsed) = (response.status().as_u16(), started.elapsed());
        app.metrics.record_request(route, status, elapsed);
        tracing::info!(method, route, status, micros = micros(elapsed), "request");
        response
    }
}

fn server_error(base_url: &BaseUrl, path: &str) -> Response {
    Problem::new(ErrorCode::ServerError, "The service failed to process the request.").respond(base_url, path)
}

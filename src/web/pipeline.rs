//! Middleware for every request: the Host check, panic recovery, security headers, metrics and the
//! access log.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use futures_util::future::{Either, ready};
use http::header::CONNECTION;
use http::{HeaderValue, Method, Request, StatusCode};
use tokio::time::Instant;

use super::app::App;
use super::built_site::ServedPath;
use super::headers;
use super::log::method_name;
use super::metrics::RouteDurations;
use super::problem::{ErrorCode, Problem};
use super::redirect::redirect_host;
use super::response::{catch_panic, catch_panic_in, text_response};
use super::routes::Route;
use crate::config::test_panic;
use crate::domain::base_url::BaseUrl;
use crate::domain::client::Peer;
use crate::logging;

/// Responds to a request of this peer and logs it.
///
/// Pages and files are ready at once. Only other routes need a future, which is in a box of its own: every connection has
/// room for what is returned here, also one that never sends a request.
pub fn handle<B>(app: &App, peer: Peer, request: Request<B>) -> impl Future<Output = Response> + Send + use<B>
where
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    let exchange = Exchange::begin(&request);
    app.log_unconfigured_proxy(peer, request.headers());
    let built = app.built();
    let served = built.served.get_key_value(request.uri().path());
    if let Some((path, served)) = served
        && (request.method() == Method::GET || request.method() == Method::HEAD)
    {
        let ServedPath { served, durations } = served;
        let respond = || {
            test_panic("request");
            redirect_or_refuse(app, &request)
                .map_or_else(|| served.read(request.method(), request.headers()), |response| (response, None))
        };
        let (response, reading) = catch_panic(respond, || (server_error(app.base_url(), path), None));
        if let Some(reading) = reading
            && request.method() == Method::GET
            && matches!(response.status(), StatusCode::OK | StatusCode::NOT_MODIFIED)
        {
            app.count_read(reading, request.headers());
        }
        return Either::Left(ready(exchange.end(app, path, Some(durations), response)));
    }
    let path_served = served.map(|(path, _)| path.clone());
    Either::Right(Box::pin(respond_by_route(app.clone(), peer, request, exchange, path_served)))
}

/// Refuses a request of a client that has too many in flight, and logs it.
pub fn refuse_in_flight<B: HttpBody>(app: &App, request: &Request<B>) -> Response {
    let exchange = Exchange::begin(request);
    let path = request.uri().path();
    let response = Problem::over_limit(Duration::from_secs(1)).respond(app.base_url(), path);
    exchange.end(app, Route::of(path).name(), None, response)
}

/// Responds to what is not a read of a page or file. `path_served` is the path if reads of it are.
async fn respond_by_route<B>(
    app: App,
    peer: Peer,
    mut request: Request<B>,
    exchange: Exchange,
    path_served: Option<String>,
) -> Response
where
    B: HttpBody<Data = Bytes, Error: Into<axum::BoxError>> + Send + 'static,
{
    let uri = request.uri().clone();
    let route = Route::of(uri.path());
    let respond = async {
        test_panic("request");
        if let Some(response) = redirect_or_refuse(&app, &request) {
            return response;
        }
        request.extensions_mut().insert(peer);
        route.respond(app.clone(), request.map(Body::new)).await
    };
    let response = catch_panic_in(respond, || server_error(app.base_url(), uri.path())).await;
    exchange.end(&app, path_served.as_deref().unwrap_or(route.name()), None, response)
}

/// Returns the response if the request names no host, several, another one of the site, or no path.
fn redirect_or_refuse<B>(app: &App, request: &Request<B>) -> Option<Response> {
    if !headers::has_one_host(request.version(), request.headers()) {
        return Some(text_response(StatusCode::BAD_REQUEST, "Send exactly one Host header.\n"));
    }
    if !request.uri().path().starts_with('/') {
        return Some(text_response(StatusCode::BAD_REQUEST, "The request target must start with a slash.\n"));
    }
    redirect_host(app, request)
}

/// What is known of a request before there is a response.
struct Exchange {
    started: Instant,
    method: &'static str,
    has_body: bool,
}

impl Exchange {
    fn begin<B: HttpBody>(request: &Request<B>) -> Self {
        let has_body = !request.body().is_end_stream();
        Self { started: Instant::now(), method: method_name(request.method()), has_body }
    }

    /// Completes the response and records the request.
    fn end(self, app: &App, route: &str, durations: Option<&RouteDurations>, mut response: Response) -> Response {
        let Self { started, method, has_body } = self;
        headers::add_security_headers(response.headers_mut());
        app.hsts().add(response.headers_mut());
        // No handler has read the body, so the connection will be closed: the client must not reuse it.
        if has_body && matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let (status, elapsed) = (response.status().as_u16(), started.elapsed());
        match durations {
            Some(durations) if status == 200 => app.metrics().record_success(route, durations, elapsed),
            _ => app.metrics().record_request(route, status, elapsed),
        }
        let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        logging::request(method, route, status, micros);
        response
    }
}

fn server_error(base_url: &BaseUrl, path: &str) -> Response {
    Problem::new(ErrorCode::ServerError, "The service failed to process the request.").respond(base_url, path)
}

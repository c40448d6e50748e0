//! Small responses that several handlers share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use axum::body::Body;
use axum::response::Response;
use futures_util::FutureExt;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::headers::add_security_headers;

/// Responds with `on_panic` if the handler panics, so that a panic affects this request alone.
pub(crate) fn catch_panic<T>(respond: impl FnOnce() -> T, on_panic: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(respond)).unwrap_or_else(|_| log_panic(on_panic))
}

/// As [`catch_panic`], for a handler that waits.
pub(crate) async fn catch_panic_in(
    response: impl Future<Output = Response>,
    on_panic: impl FnOnce() -> Response,
) -> Response {
    AssertUnwindSafe(response).catch_unwind().await.unwrap_or_else(|_| log_panic(on_panic))
}

fn log_panic<T>(on_panic: impl FnOnce() -> T) -> T {
    tracing::error!("a request handler panicked");
    on_panic()
}

/// Copied, which takes less time than to insert them one by one.
static JSON_HEADERS: LazyLock<HeaderMap> = LazyLock::new(|| {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    let mut headers = HeaderMap::from_iter(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    add_security_headers(&mut headers);
    headers
});

/// JSON for one caller, never cached.
pub(crate) fn json_response(status: StatusCode, json: impl Into<Body>) -> Response {
    let mut response = Response::new(json.into());
    *response.status_mut() = status;
    *response.headers_mut() = JSON_HEADERS.clone();
    response
}

//! One request and its answer: what holds for all of them, whoever answers.

use std::panic::AssertUnwindSafe;

use axum::extract::Request;
use axum::response::Response;
use futures_util::FutureExt;
use http::header::HOST;
use http::{HeaderMap, Method, StatusCode, Version};
use tokio::time::Instant;
use tower::ServiceExt;

use super::app::App;
use super::problem::{ErrorCode, Problem};
use super::{headers, pages, routes};
use crate::domain::base_url::BaseUrl;

/// Answers a request, whatever it is, and writes one line about it.
pub async fn handle(app: App, router: axum::Router, request: Request) -> Response {
    let began = Instant::now();
    let (method, path) = (name_of(request.method()), request.uri().path().to_owned());
    let mut response = guarded(app.base_url(), &path, answer(&app, router, request)).await;
    headers::add_everywhere(response.headers_mut(), app.base_url());
    let (route, status) = (routes::name_of(&app, &path), response.status().as_u16());
    let took = began.elapsed();
    app.metrics().answered(route, status, took);
    tracing::info!(%method, route, status, micros = took.as_micros(), "request");
    response
}

/// What the log calls a method: anybody may invent one, and nothing that callers write is in the log.
pub(super) fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Pages and files are found without the router.
async fn answer(app: &App, router: axum::Router, request: Request) -> Response {
    if !has_one_host(request.version(), request.headers()) {
        return pages::text_response(StatusCode::BAD_REQUEST, "A request names its host once, in a Host header.\n");
    }
    let path = request.uri().path();
    if !path.starts_with('/') {
        return pages::text_response(StatusCode::BAD_REQUEST, "The address of a request starts with a slash.\n");
    }
    if (request.method() == Method::GET || request.method() == Method::HEAD)
        && let Some(served) = app.built().served.get(path)
    {
        return served.respond(request.method(), request.headers());
    }
    match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// A panic is our fault and this request's alone: it becomes a 500, and the rest goes on.
async fn guarded(base_url: &BaseUrl, path: &str, answer: impl Future<Output = Response>) -> Response {
    AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("a request made the service panic");
        Problem::new(ErrorCode::ServerError, "The service failed to carry this out.").respond(base_url, path)
    })
}

fn has_one_host(version: Version, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).into_iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), None) => true,
        (None, _) => version != Version::HTTP_11,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_problem() {
        let base_url = BaseUrl::parse("https://troupe.example").unwrap();
        let response = guarded(&base_url, "/api/download", async { panic!("planted") }).await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()["content-type"], "application/problem+json");
    }
}

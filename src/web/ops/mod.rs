//! The ops listener: dashboard, metrics and health for the makers, never on the public listener.

mod auth;
mod metrics;

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::allowed_methods::{READ, method_not_allowed};
use super::app::App;
use super::headers;
use super::log::{method_name, micros};
use super::response::{catch_panic_in, json_response};
use super::shell::{self, Frame};
use super::{dashboard, desk};
use crate::actions::readiness;
use crate::config::test_panic;
use crate::tls::CertificateStatus;

pub use auth::OpsAuth;

/// No scripts, no forms, nothing from other origins.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);

/// Polled every few seconds, so a request is logged only if its response is not a 200.
const POLLED_PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Handles a request on the ops listener.
pub async fn handle(app: App, auth: OpsAuth, request: Request) -> Response {
    let started = Instant::now();
    let (head, body) = request.into_parts();
    let respond = async {
        if !headers::has_one_host(head.version, &head.headers) {
            return (StatusCode::BAD_REQUEST, "Send exactly one Host header.\n").into_response();
        }
        // It has tokens and sessions of its own.
        if desk::is_below(head.uri.path()) {
            return Box::pin(desk::on_ops_listener(&app, Request::from_parts(head.clone(), body))).await;
        }
        match auth.rejection(&head.headers, app.service.clock.now()) {
            None => respond(&app, &head).await,
            Some(rejection) => rejection.respond().await,
        }
    };
    let mut response = catch_panic_in(respond, || {
        (StatusCode::INTERNAL_SERVER_ERROR, "Failed. The log has the reason.\n").into_response()
    })
    .await;
    headers::add_security_headers(response.headers_mut());
    if !desk::is_below(head.uri.path()) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    }
    response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let (method, route, status) = (method_name(&head.method), route(head.uri.path()), response.status().as_u16());
    if status != 200 || !POLLED_PATHS.contains(&route) {
        tracing::info!(%method, route, status, micros = micros(started.elapsed()), "ops request");
    }
    response
}

/// Returns the name of a path in the log. Unknown paths have none, because clients choose them.
fn route(path: &str) -> &'static str {
    if desk::is_below(path) {
        return desk::ROOT;
    }
    let known = ["/", shell::STYLE_PATH].into_iter().chain(POLLED_PATHS);
    known.into_iter().find(|known| *known == path).unwrap_or("other")
}

async fn respond(app: &App, head: &Parts) -> Response {
    test_panic("request");
    if head.method != Method::GET && head.method != Method::HEAD {
        return method_not_allowed(READ);
    }
    match head.uri.path() {
        "/" => {
            let offers_sign_in = desk::opens_to(head);
            let frame = Frame { offers_sign_in, ..Frame::default() };
            Box::pin(dashboard::dashboard(app, "/", &frame, head.uri.query())).await
        }
        "/healthz" => "ok\n".into_response(),
        "/readyz" => readyz(app).await,
        "/metrics" => metrics::metrics(app).await,
        path => shell::file(path).or_else(|| asset(app, path, head)).unwrap_or_else(|| {
            (StatusCode::NOT_FOUND, "Not found. Available: /, /healthz, /readyz, /metrics.\n").into_response()
        }),
    }
}

/// Serves an asset of the site: the dashboard links to its icon.
fn asset(app: &App, path: &str, head: &Parts) -> Option<Response> {
    let built = app.built();
    let served = built.served.get(path).filter(|_| path.starts_with("/assets/"))?;
    Some(served.respond(&head.method, &head.headers))
}

/// Responds with 200 if this instance can do its work, otherwise with 503. Either way, the body has a
/// line for each check.
async fn readyz(app: &App) -> Response {
    let checks = readiness(&app.service).await;
    let ready = checks.iter().all(|check| check.problem.is_none() || !check.fails_readiness);
    let parts: Map<_, _> = checks
        .into_iter()
        .map(|check| (check.name.to_owned(), Value::from(check.problem.unwrap_or_else(|| "ok".to_owned()))))
        .collect();
    let mut report = json!({ "ready": ready, "parts": parts });
    if let Some(expires) = app.service.certificate.as_ref().and_then(CertificateStatus::expires) {
        report["certificate_expires"] = expires.rfc3339().into();
    }
    if let Some(host) = app.service.store.host_in_use() {
        report["database_host"] = host.into();
    }
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json_response(status, format!("{report:#}\n"))
}

//! What the makers see of the running service: on a listener of its own, never on the public one.

mod access;
mod metrics;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Map, Value, json};

use super::app::App;
use super::pages::text_response;
use crate::actions::readiness;

pub use access::Access;

/// Answers a request of a maker, or of the makers' programs.
pub async fn exchange(app: App, access: Access, request: Request) -> Response {
    let mut response = match access.refusal(request.headers()) {
        None => answer(&app, request.method(), request.uri().path()).await,
        Some(refusal) => refusal,
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn answer(app: &App, method: &Method, path: &str) -> Response {
    if method != Method::GET && method != Method::HEAD {
        let mut response = text_response(StatusCode::METHOD_NOT_ALLOWED, "This address takes GET and HEAD only.\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/healthz" => text_response(StatusCode::OK, "ok\n"),
        "/readyz" => readyz(app).await,
        "/metrics" => metrics::metrics(app).await,
        _ => text_response(StatusCode::NOT_FOUND, "There are /healthz, /readyz and /metrics.\n"),
    }
}

/// 200 when this instance can do its work, else 503; either way a line for each part.
async fn readyz(app: &App) -> Response {
    let parts = readiness(app.service()).await;
    let ready = parts.iter().all(|part| part.trouble.is_none() || !part.turns_away);
    let told: Map<_, _> = parts
        .into_iter()
        .map(|part| (part.name.to_owned(), Value::from(part.trouble.unwrap_or_else(|| "ok".to_owned()))))
        .collect();
    let mut response = Response::new(Body::from(format!("{:#}\n", json!({ "ready": ready, "parts": told }))));
    *response.status_mut() = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

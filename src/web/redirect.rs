//! The plain HTTP listener beside https: answers HTTP-01 challenges of the ACME authority, and redirects to the public URL. Further
//! host names are redirected, too.

use axum::response::{IntoResponse as _, Response};
use http::header::{HOST, LOCATION};
use http::{Method, Request, StatusCode};

use super::app::App;
use super::log::method_name;

/// Where an ACME authority asks for the answer to a challenge (RFC 8555, section 8.3).
const CHALLENGE_PREFIX: &str = "/.well-known/acme-challenge/";
/// Tokens have at least 128 bits, in base64.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 22..=256;

/// The response of the plain HTTP listener. What was sent in clear must not be repeated silently, so only reads are redirected.
/// It has no HSTS, which browsers ignore over plain HTTP.
pub async fn redirect_to_https<B>(app: App, request: Request<B>) -> Response {
    let reads = request.method() == Method::GET || request.method() == Method::HEAD;
    let token = request.uri().path().strip_prefix(CHALLENGE_PREFIX);
    let (route, response) = match token {
        Some(token) if reads && app.answers_challenges => {
            ("/.well-known/acme-challenge/{token}", answer_challenge(&app, token).await)
        }
        _ if reads => ("redirect", redirect(&app, &request)),
        _ => {
            let text =
                format!("This was sent without encryption and is not processed. Use {} instead.\n", &app.base_url);
            ("redirect", (StatusCode::FORBIDDEN, text).into_response())
        }
    };
    let (method, status) = (method_name(request.method()), response.status().as_u16());
    tracing::info!(method, route, status, "request");
    response
}

/// Any instance can answer, because the answers are in the database.
async fn answer_challenge(app: &App, token: &str) -> Response {
    let is_token = TOKEN_BYTES.contains(&token.len())
        && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    let answer = if is_token { app.service.store.acme_challenge(token).await } else { Ok(None) };
    match answer {
        Ok(Some(answer)) => answer.into_response(),
        Ok(None) => (StatusCode::NOT_FOUND, "There is no such challenge.\n").into_response(),
        Err(failure) => {
            tracing::warn!(%failure, "cannot answer a challenge");
            (StatusCode::SERVICE_UNAVAILABLE, "The answer cannot be read just now.\n").into_response()
        }
    }
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
    (StatusCode::PERMANENT_REDIRECT, [(LOCATION, app.base_url.to(path).into_bytes())]).into_response()
}

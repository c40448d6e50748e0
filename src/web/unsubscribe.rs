//! The unsubscribe page of the monthly email, and the one-click unsubscribe of mail clients (RFC 8058).
//!
//! `GET` changes nothing, because programs follow links in emails. The token in the path is the only
//! credential, so requests from any origin are accepted.

use axum::extract::Request;
use axum::response::Response;
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use url::form_urlencoded;

use super::app::App;
use super::built_site::BuiltSite;
use super::headers::make_private;
use super::limits::ClientLimit;
use super::problem::RETRY_AFTER_SECONDS;
use super::response::{method_not_allowed, text_response};
use super::served::Served;
use super::{body, pages};
use crate::actions::{Failure, can_unsubscribe, unsubscribe};
use crate::domain::unsubscribe::{UNSUBSCRIBE_PATH, UnsubscribeKind, UnsubscribeToken};

/// `GET` and `POST /unsubscribe/{token}`
pub(crate) async fn unsubscribe_page(app: App, request: Request) -> Response {
    let token = request.uri().path().strip_prefix(UNSUBSCRIBE_PATH).and_then(UnsubscribeToken::parse);
    let built = app.built();
    let (head, body) = request.into_parts();
    let Some(token) = token else {
        return match refusal_of_unknown_token(&app, &head) {
            Some(refusal) => refusal,
            None => pages::fallback(&app, &Request::from_parts(head, body)),
        };
    };
    match head.method {
        Method::GET | Method::HEAD => {
            let known = can_unsubscribe(app.service(), &token).await;
            respond(&built, known, &built.unsubscribe, &head.headers)
        }
        Method::POST => {
            let Ok(body) = body::read(&head.headers, body).await else {
                let text = "The request is incomplete. Please send it again.\n";
                return text_response(StatusCode::BAD_REQUEST, text);
            };
            let kind = requested_kind(&body);
            let page = match kind {
                UnsubscribeKind::Unsubscribe => &built.unsubscribed,
                UnsubscribeKind::NotMe => &built.never_again,
            };
            let known = unsubscribe(app.service(), &token, kind).await;
            let refusal = if matches!(known, Ok(false)) { refusal_of_unknown_token(&app, &head) } else { None };
            refusal.unwrap_or_else(|| respond(&built, known, page, &HeaderMap::new()))
        }
        _ => method_not_allowed("GET, HEAD, POST"),
    }
}

/// Counts a `POST` with an unknown token, and returns the response if the client has sent too many. A valid token is
/// never refused, because mail providers unsubscribe many readers from one address.
fn refusal_of_unknown_token(app: &App, head: &Parts) -> Option<Response> {
    if head.method != Method::POST {
        return None;
    }
    let over_limit = app.count_request(ClientLimit::UnknownTokens, head).err()?;
    let problem = app.refuse(over_limit);
    let mut response = text_response(problem.code.status(), format!("{}\n", problem.detail));
    response.headers_mut().extend(problem.retry_after_header().map(|seconds| (RETRY_AFTER, seconds)));
    make_private(response.headers_mut());
    Some(response)
}

/// Any body unsubscribes, because mail clients send their own. Only the page's checkbox also suppresses
/// the address.
fn requested_kind(body: &[u8]) -> UnsubscribeKind {
    let not_me = ("reason", UnsubscribeKind::NotMe.as_str());
    if form_urlencoded::parse(body).any(|(name, value)| (name.as_ref(), value.as_ref()) == not_me) {
        UnsubscribeKind::NotMe
    } else {
        UnsubscribeKind::Unsubscribe
    }
}

/// Responds with `page` if the token is known.
fn respond(built: &BuiltSite, known: Result<bool, Failure>, page: &Served, headers: &HeaderMap) -> Response {
    match known {
        Ok(true) => page.respond(&Method::GET, headers),
        Ok(false) => built.not_found.respond(&Method::GET, headers),
        Err(failure) => {
            tracing::error!(%failure, "an unsubscribe request failed");
            let mut response = text_response(
                StatusCode::SERVICE_UNAVAILABLE,
                "This did not work just now, and nothing was changed. Please try again in a minute.\n",
            );
            response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS.into());
            make_private(response.headers_mut());
            response
        }
    }
}

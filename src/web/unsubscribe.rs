//! The unsubscribe page of the monthly email, and the one-click unsubscribe of mail clients (RFC 8058).
//!
//! `GET` changes nothing, because programs follow links in emails. The token in the path is the only
//! credential, so requests from any origin are accepted.

use axum::extract::{Request, State};
use axum::response::Response;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, StatusCode};
use url::form_urlencoded;

use super::app::App;
use super::built_site::BuiltSite;
use super::headers::make_private;
use super::problem::RETRY_AFTER_SECONDS;
use super::response::{method_not_allowed, text_response};
use super::served::Served;
use super::{body, pages};
use crate::actions::{Failure, can_unsubscribe, unsubscribe};
use crate::domain::unsubscribe::{UNSUBSCRIBE_PATH, UnsubscribeKind, UnsubscribeToken};

/// `GET` and `POST /unsubscribe/{token}`
pub(crate) async fn unsubscribe_page(State(app): State<App>, request: Request) -> Response {
    let Some(token) = request.uri().path().strip_prefix(UNSUBSCRIBE_PATH).and_then(UnsubscribeToken::parse) else {
        return pages::fallback(State(app), request).await;
    };
    let built = app.built();
    let (head, body) = request.into_parts();
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
            respond(&built, known, page, &HeaderMap::new())
        }
        _ => method_not_allowed("GET, HEAD, POST"),
    }
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
            response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
            make_private(response.headers_mut());
            response
        }
    }
}

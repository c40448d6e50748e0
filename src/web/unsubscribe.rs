//! The unsubscribe page of the monthly email, and the one-click unsubscribe of mail clients (RFC 8058).
//!
//! `GET` changes nothing, because programs follow links in emails. The token in the path is the only
//! credential, so requests from any origin are accepted.

use axum::extract::Request;
use axum::response::Response;
use http::Method;

use super::app::App;
use super::response::method_not_allowed;
use super::token_page::{incomplete_request, refusal_of_unknown_token, respond, respond_to_post, says_not_me};
use super::{body, pages};
use crate::actions::{can_unsubscribe, unsubscribe};
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
            let Ok(body) = body::read(&head.headers, body).await else { return incomplete_request() };
            let kind = requested_kind(&body);
            let page = match kind {
                UnsubscribeKind::Unsubscribe => &built.unsubscribed,
                UnsubscribeKind::NotMe => &built.never_again,
            };
            let known = unsubscribe(app.service(), &token, kind).await;
            respond_to_post(&app, &head, &built, known, page)
        }
        _ => method_not_allowed("GET, HEAD, POST"),
    }
}

/// Any body unsubscribes, because mail clients send their own. Only the page's checkbox also suppresses
/// the address.
fn requested_kind(body: &[u8]) -> UnsubscribeKind {
    if says_not_me(body) { UnsubscribeKind::NotMe } else { UnsubscribeKind::Unsubscribe }
}

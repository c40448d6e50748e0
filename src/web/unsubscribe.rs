//! The page for leaving the monthly email, and leaving it: from the page, or by the one click that
//! mail readers offer (RFC 8058).
//!
//! Looking at the page changes nothing, because programs follow links in mails. The token in the
//! address is all that is asked for, so it does not matter where the request comes from.

use axum::extract::{Request, State};
use axum::response::Response;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, StatusCode};
use url::form_urlencoded;

use super::app::App;
use super::built_site::BuiltSite;
use super::problem::RETRY_AFTER_SECONDS;
use super::response::{read_or_post_only, text_response};
use super::served::Served;
use super::{body, headers, pages};
use crate::actions::{Failure, can_unsubscribe, unsubscribe};
use crate::domain::unsubscribe::{UNSUBSCRIBE_PATH, UnsubscribeKind, UnsubscribeToken};

/// `GET` and `POST /unsubscribe/TOKEN`
pub(crate) async fn unsubscribe_page(State(app): State<App>, request: Request) -> Response {
    let Some(token) = request.uri().path().strip_prefix(UNSUBSCRIBE_PATH).and_then(UnsubscribeToken::parse) else {
        return pages::unknown(State(app), request).await;
    };
    let built = app.built();
    let (head, body) = request.into_parts();
    match head.method {
        Method::GET | Method::HEAD => {
            let known = can_unsubscribe(app.service(), &token).await;
            answer(&built, known, &built.unsubscribe, &head.headers)
        }
        Method::POST => {
            let Ok(body) = body::read(&head.headers, body).await else {
                return text_response(
                    StatusCode::BAD_REQUEST,
                    "The request did not arrive whole. Please send it again.\n",
                );
            };
            let how = how(&body);
            let page = match how {
                UnsubscribeKind::Unsubscribe => &built.unsubscribed,
                UnsubscribeKind::NotMe => &built.never_again,
            };
            let known = unsubscribe(app.service(), &token, how).await;
            answer(&built, known, page, &HeaderMap::new())
        }
        _ => read_or_post_only(),
    }
}

/// Whatever is sent means to leave; only the page's own box means for good.
fn how(body: &[u8]) -> UnsubscribeKind {
    let not_me = ("reason", UnsubscribeKind::NotMe.as_str());
    if form_urlencoded::parse(body).any(|(name, value)| (name.as_ref(), value.as_ref()) == not_me) {
        UnsubscribeKind::NotMe
    } else {
        UnsubscribeKind::Unsubscribe
    }
}

fn answer(built: &BuiltSite, known: Result<bool, Failure>, page: &Served, asked: &HeaderMap) -> Response {
    match known {
        Ok(true) => page.respond(&Method::GET, asked),
        Ok(false) => built.not_found.respond(&Method::GET, asked),
        Err(failure) => {
            tracing::error!(%failure, "somebody could not leave");
            let mut response = text_response(
                StatusCode::SERVICE_UNAVAILABLE,
                "This did not work just now, and nothing was changed. Please try again in a minute.\n",
            );
            response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
            headers::keep_private(response.headers_mut());
            response
        }
    }
}

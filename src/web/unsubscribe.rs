//! The page for leaving the monthly email, and leaving it: from the page, or by the one click that
//! mail readers offer (RFC 8058).
//!
//! Looking at the page changes nothing, because programs follow links in mails. The token in the
//! address is all that is asked for, so it does not matter where the request comes from.

use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{ALLOW, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use url::form_urlencoded;

use super::app::{App, BuiltSite};
use super::pages::{self, Served, text_response};
use super::problem::RETRY_AFTER_SECONDS;
use super::{body, headers};
use crate::actions::{Failure, can_unsubscribe, unsubscribe};
use crate::domain::unsubscribe::{UNSUBSCRIBE_PATH, UnsubscribeKind, UnsubscribeToken};
use crate::site::Site;

pub(crate) const ROUTE: &str = "/unsubscribe/{token}";
/// What the log calls it: a token is nobody's business.
pub(crate) const NAME: &str = "/unsubscribe/*";

/// The pages of leaving.
#[derive(Debug)]
pub(crate) struct Farewell {
    ask: Served,
    unsubscribed: Served,
    never_again: Served,
}

impl Farewell {
    pub(crate) fn new(site: &Site) -> Self {
        Self {
            ask: Served::after_form(&site.unsubscribe),
            unsubscribed: Served::after_form(&site.unsubscribed),
            never_again: Served::after_form(&site.never_again),
        }
    }
}

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
            answer(&built, known, &built.farewell.ask, &head.headers)
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
                UnsubscribeKind::Unsubscribe => &built.farewell.unsubscribed,
                UnsubscribeKind::NotMe => &built.farewell.never_again,
            };
            let known = unsubscribe(app.service(), &token, how).await;
            answer(&built, known, page, &HeaderMap::new())
        }
        _ => {
            let mut response =
                text_response(StatusCode::METHOD_NOT_ALLOWED, "This address takes GET, HEAD and POST.\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
            response
        }
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

//! What the pages have in common whose path ends in a token from a mail: unsubscribing, and confirming an opt-in.
//!
//! `GET` changes nothing, because programs follow links in emails. The token is the only credential, so requests from any
//! origin are accepted.

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
use super::response::text_response;
use super::served::Served;
use crate::actions::Failure;
use crate::domain::unsubscribe::UnsubscribeKind;

/// Whether the body is that of a form that says that the reader did not ask for mail.
pub(super) fn says_not_me(body: &[u8]) -> bool {
    let not_me = ("reason", UnsubscribeKind::NotMe.as_str());
    form_urlencoded::parse(body).any(|(name, value)| (name.as_ref(), value.as_ref()) == not_me)
}

/// The response to a body that did not arrive as a whole.
pub(super) fn incomplete_request() -> Response {
    text_response(StatusCode::BAD_REQUEST, "The request is incomplete. Please send it again.\n")
}

/// Counts a `POST` with an unknown token, and returns the response if the client has sent too many. A valid token is
/// never refused, because mail providers unsubscribe many readers from one address.
pub(super) fn refusal_of_unknown_token(app: &App, head: &Parts) -> Option<Response> {
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

/// Responds to a `POST` with `page` if the token is known. An unknown one counts against the client.
pub(super) fn respond_to_post(
    app: &App,
    head: &Parts,
    built: &BuiltSite,
    known: Result<bool, Failure>,
    page: &Served,
) -> Response {
    let refusal = if matches!(known, Ok(false)) { refusal_of_unknown_token(app, head) } else { None };
    refusal.unwrap_or_else(|| respond(built, known, page, &HeaderMap::new()))
}

/// Responds with `page` if the token is known.
pub(super) fn respond(built: &BuiltSite, known: Result<bool, Failure>, page: &Served, headers: &HeaderMap) -> Response {
    match known {
        Ok(true) => page.respond(&Method::GET, headers),
        Ok(false) => built.not_found.respond(&Method::GET, headers),
        Err(failure) => {
            tracing::error!(%failure, "a request with a token failed");
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

//! Why a request to the desk is not served, as a page that says what to do next.

use axum::response::{IntoResponse as _, Response};
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::json;

use crate::actions::{Failure, PersonFailure, RetryFailure};
use crate::store::StoreFailure;
use crate::web::app::App;
use crate::web::desk::api::problem::DeskProblem;
use crate::web::limits::OverLimit;
use crate::web::shell::{self, Frame};

#[derive(Debug)]
pub(super) enum DeskFailure {
    /// There is no such page, or nothing of this name any more.
    NotFound,
    Method,
    /// The client sends too many requests.
    OverLimit(OverLimit),
    /// The request does not come from a page of the desk.
    OtherOrigin,
    /// The session ended while the page was open.
    SignedOut,
    /// What was sent cannot be used: a sentence that says why.
    Invalid(String),
    /// The same, with a status that says more.
    Refused(DeskProblem),
    Failed(Failure),
}

impl DeskFailure {
    /// Of the page: its title, and what it says.
    pub(super) fn respond(self, app: &App) -> Response {
        let mut headers = HeaderMap::new();
        let (status, title, text) = match self {
            Self::NotFound => (StatusCode::NOT_FOUND, "Not found", "There is no such page, or it is gone.".to_owned()),
            Self::Method => {
                headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
                (StatusCode::METHOD_NOT_ALLOWED, "Not possible", "Pages are read, or sent by POST.".to_owned())
            }
            Self::OverLimit(over_limit) => {
                let problem = app.limits.refuse(over_limit);
                headers.extend(problem.retry_after().into_iter().flatten());
                (StatusCode::SERVICE_UNAVAILABLE, "Too many requests", problem.detail)
            }
            Self::OtherOrigin => (
                StatusCode::FORBIDDEN,
                "Nothing was changed",
                "The request did not come from a page of the desk. Open the desk itself, and try again there."
                    .to_owned(),
            ),
            Self::SignedOut => (
                StatusCode::FORBIDDEN,
                "Nothing was changed",
                "Your session has ended. Sign in, go back to the page, and send it again.".to_owned(),
            ),
            Self::Invalid(text) => (StatusCode::UNPROCESSABLE_ENTITY, "Nothing was changed", text),
            Self::Refused(problem) => {
                let (status, text) = problem.into_parts();
                (status, "Nothing was changed", text)
            }
            Self::Failed(failure) => {
                tracing::warn!(%failure, "a request to the desk failed");
                let text =
                    "The database did not answer. Nothing is lost: try again in a moment. The overview says more.";
                (StatusCode::SERVICE_UNAVAILABLE, "This did not work just now", text.to_owned())
            }
        };
        let frame = Frame { is_of_desk: true, ..Frame::default() };
        let page = shell::render(app, status, "message.html", &frame, json!({ "title": title, "text": text }));
        (headers, page).into_response()
    }
}

impl From<Failure> for DeskFailure {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<PersonFailure> for DeskFailure {
    fn from(failure: PersonFailure) -> Self {
        match failure {
            PersonFailure::Store(failure) => failure.into(),
            unknown @ PersonFailure::Unknown(_) => Self::Invalid(unknown.to_string()),
        }
    }
}

impl From<RetryFailure> for DeskFailure {
    fn from(failure: RetryFailure) -> Self {
        match failure {
            RetryFailure::Store(failure) => failure.into(),
            refused => Self::Invalid(refused.to_string()),
        }
    }
}

impl From<StoreFailure> for DeskFailure {
    fn from(failure: StoreFailure) -> Self {
        Self::Failed(failure.into())
    }
}

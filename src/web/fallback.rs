//! What is rendered for each request: the page for a client over a limit, and the fallback for every path that has no route.

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;

use super::app::App;
use super::headers::PRIVATE;
use super::problem::Problem;
use super::representation::HTML;
use crate::site::{FormValues, ListedPage, SiteFailure};

/// Responds 404, or for a page or file that was requested with an unsupported method, 405.
pub(crate) async fn fallback(State(app): State<App>, request: Request) -> Response {
    let built = app.built();
    let served = built.served.get(request.uri().path()).unwrap_or(&built.not_found);
    served.respond(request.method(), request.headers())
}

/// The page for a client that exceeded a limit. With a form's page, action and values, it can be submitted again.
pub(crate) fn busy_page(app: &App, problem: &Problem, form: Option<(&ListedPage, &str, &FormValues)>) -> Response {
    let html = app.built().site.render_busy(&problem.detail, problem.retry_after, form);
    respond_with_page(problem, html)
}

/// The page that explains a problem.
pub(crate) fn respond_with_page(problem: &Problem, html: Result<String, SiteFailure>) -> Response {
    match html {
        Ok(html) => {
            (problem.code.status(), [(CONTENT_TYPE, HTML)], PRIVATE, problem.retry_after(), html).into_response()
        }
        Err(failure) => {
            tracing::error!(%failure, "the page of an error could not be rendered");
            let text = "Something went wrong on our side. Please go back and try again.\n";
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}

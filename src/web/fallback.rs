//! What is rendered for each request: `/.well-known/security.txt`, the page for a client over a limit, and the fallback for every path that has no route.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use super::app::App;
use super::headers::PRIVATE;
use super::problem::Problem;
use super::representation::HTML;
use crate::site::{FormValues, PageName, SiteFailure};

pub(crate) const SECURITY_TXT: &str = "/.well-known/security.txt";

/// How long a copy stays valid: less than a year, as the RFC recommends.
const VALIDITY: Duration = Duration::from_hours(180 * 24);

/// Responds 404, or for a page or file that was requested with an unsupported method, 405.
pub(crate) async fn fallback(State(app): State<App>, request: Request) -> Response {
    let built = app.built();
    let served = built.served.get(request.uri().path()).unwrap_or(&built.not_found);
    served.respond(request.method(), request.headers())
}

/// RFC 9116. It is rendered for each request, so it never expires.
pub(crate) async fn security_txt(State(app): State<App>) -> Response {
    let base_url = &app.base_url;
    let contact = base_url.to(PageName::Contact.path());
    let expires = app.service.clock.now().after(VALIDITY).rfc3339();
    let text = format!(
        "# Agents: {} says how to report for a person.\nContact: {contact}#security\nExpires: {expires}\nPolicy: {contact}#security-policy\n\
         Preferred-Languages: en\nCanonical: {}\n",
        base_url.to("/llms.txt"),
        base_url.to(SECURITY_TXT),
    );
    ([(CACHE_CONTROL, "public, max-age=86400")], text).into_response()
}

/// The page for a client that exceeded a limit. With a form's action and values, it can be submitted again.
pub(crate) fn busy_page(app: &App, problem: &Problem, form: Option<(&str, &FormValues)>) -> Response {
    let html = app.built().site.render_busy(&problem.detail, form);
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

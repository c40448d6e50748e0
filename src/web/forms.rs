//! The site's own forms, for browsers without JavaScript: the rules and error messages of the API, with
//! pages as responses.

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use url::form_urlencoded;

use super::allowed_methods::{READ_AND_SUBMIT, method_not_allowed};
use super::api::is_json;
use super::app::App;
use super::body;
use super::built_site::{CONTACT_SENT_PATH, DOWNLOAD_STARTED_PATH};
use super::endpoints::{parse_contact_message, parse_download_request};
use super::fallback::{busy_page, respond_with_page};
use super::fields::Fields;
use super::initiator::Initiator;
use super::problem::{ErrorCode, Problem};
use super::refusal::ClientLimit;
use crate::actions::{send_contact, start_download};
use crate::domain::signups::{DownloadRequest, Via};
use crate::domain::text::Source;
use crate::site::{Form, FormErrors, FormValues, ListedPage, PageName};

/// Where the site's forms are posted to.
pub(crate) const FORM_PATHS: [&str; 2] = ["/download", PageName::Contact.path()];

/// A field that visitors do not see, so only a program fills it in. Because that may be a password
/// manager, the error message explains it.
const HONEYPOT: &str = "website_confirm";
/// The path of the page that the form is on, in a translation of that page.
const PAGE: &str = "page";

/// Most fields of a form that are looked at. The site's own have five.
const MAX_FIELDS: usize = 16;

/// The `source` of the site's own forms, with JavaScript and without.
const SOURCE: &str = "site";

/// `POST /download`: the form of the home page. A `GET` redirects to it.
pub(crate) async fn download(State(app): State<App>, request: Request) -> Response {
    if request.method() == Method::GET || request.method() == Method::HEAD {
        return see_other("/#download");
    }
    submit(&app, ClientLimit::Signups, request, PageName::Home, async |fields, page, head| {
        let order = parse_download_request(fields, Via::Site)?;
        app.limits.count_opt_in(&app.service, &order, head)?;
        let (source, wording) = (Source::parse(SOURCE).ok(), app.built().site.opt_in_wording(&page.language));
        start_download(&app.service, DownloadRequest { source, wording, ..order }).await?;
        Ok(DOWNLOAD_STARTED_PATH)
    })
    .await
}

/// `POST /contact`: the form of the contact page.
pub(crate) async fn contact(State(app): State<App>, request: Request) -> Response {
    submit(&app, ClientLimit::Messages, request, PageName::Contact, async |fields, _, _| {
        send_contact(&app.service, parse_contact_message(fields)?).await?;
        Ok(CONTACT_SENT_PATH)
    })
    .await
}

/// Parses a form and runs `action`, which returns the path to redirect to. On an error, responds with
/// the page that has the form.
async fn submit(
    app: &App,
    limit: ClientLimit,
    request: Request,
    page: PageName,
    action: impl AsyncFnOnce(Fields, &ListedPage, &Parts) -> Result<&'static str, Problem>,
) -> Response {
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        return method_not_allowed(READ_AND_SUBMIT);
    }
    let body = body::read(&head.headers, body).await;
    // Every request counts, whatever its response will be.
    let within_limit = app.limits.count(limit, &head);
    let is_read = body.is_ok();
    let body = body.unwrap_or_default();
    let pairs: Vec<(String, String)> = form_urlencoded::parse(&body)
        .take(MAX_FIELDS)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let values = values(&pairs);
    let built = app.built();
    let page = built.site.form_page(page, value(&pairs, PAGE));
    let outcome = async {
        if !is_read && !sends_json(&head.headers) {
            return Err(invalid_form("The form is incomplete or too large."));
        }
        within_limit.map_err(|over_limit| app.limits.refuse(over_limit))?;
        check_origin(app, &head.headers)?;
        check_content_type(app, &head)?;
        action(fields(pairs)?, page, &head).await
    };
    match outcome.await {
        Ok(location) => see_other(&built.site.path(&page.language, location)),
        Err(problem) if sends_json(&head.headers) => problem.respond(&app.base_url, head.uri.path()),
        Err(problem) => page_with_errors(app, page, &head, values, &problem),
    }
}

/// Converts a form to the fields of a request. An empty field counts as not sent.
fn fields(pairs: Vec<(String, String)>) -> Result<Fields, Problem> {
    if pairs.iter().any(|(name, value)| name == HONEYPOT && !value.is_empty()) {
        return Err(invalid_form(
            "A field that people do not see was filled in, perhaps by a password manager. It is empty again now: \
             please send the form once more.",
        ));
    }
    let filled = pairs.into_iter().filter(|(name, value)| name != HONEYPOT && name != PAGE && !value.is_empty());
    // Browsers submit line breaks as CRLF.
    Ok(Fields::from_form(filled.map(|(name, value)| (name, value.replace("\r\n", "\n")))))
}

/// Refuses cross-site form submissions. Old browsers and other clients that send neither header pass.
fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    if Initiator::of(headers, &app.base_url) == Initiator::OtherSite {
        return Err(invalid_form("This form was sent from another site. Please fill it in here and send it again."));
    }
    Ok(())
}

/// A missing header is accepted.
fn check_content_type(app: &App, Parts { headers, uri, .. }: &Parts) -> Result<(), Problem> {
    if sends_json(headers) {
        let endpoint = app.base_url.to(&format!("/api{}", uri.path()));
        return Err(invalid_form("This address takes the form of a page, not JSON.")
            .resolved_by(format!("Send the same JSON by POST to {endpoint}.")));
    }
    if headers.get(CONTENT_TYPE).is_some_and(|kind| !kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"))
    {
        return Err(invalid_form(
            "This form was sent in a way that this page does not understand. Please send it again.",
        ));
    }
    Ok(())
}

/// Such a request comes from a program that has mistaken the form's address for that of the API.
fn sends_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(is_json)
}

fn invalid_form(detail: &str) -> Problem {
    Problem::new(ErrorCode::InvalidBody, detail)
}

fn value<'a>(pairs: &'a [(String, String)], name: &str) -> &'a str {
    pairs.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
}

fn values(pairs: &[(String, String)]) -> FormValues {
    let value = |name: &str| value(pairs, name).to_owned();
    FormValues {
        email: value("email"),
        updates: !value("updates").is_empty(),
        name: value("name"),
        message: value("message"),
    }
}

/// The page again, with the submitted values, and each error beside its field. Over a limit, a small page.
fn page_with_errors(app: &App, page: &ListedPage, head: &Parts, values: FormValues, problem: &Problem) -> Response {
    if problem.is_over_limit {
        return busy_page(app, problem, Some((page, head.uri.path(), &values)));
    }
    let form = Form { values, errors: form_errors(problem) };
    respond_with_page(problem, app.built().site.render_with_form(page, &form))
}

fn form_errors(problem: &Problem) -> FormErrors {
    let mut errors = FormErrors::default();
    for error in &problem.errors {
        match error.pointer.as_ref() {
            "#/email" => errors.email.clone_from(&error.detail),
            "#/name" => errors.name.clone_from(&error.detail),
            "#/message" => errors.message.clone_from(&error.detail),
            _ => errors.form.clone_from(&error.detail),
        }
    }
    if problem.errors.is_empty() {
        errors.form.clone_from(&problem.detail);
    }
    errors
}

fn see_other(location: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, location), (CACHE_CONTROL, "no-store")]).into_response()
}

//! The site's own forms, for browsers without JavaScript: same rules, same words as the API, and an
//! answer that a person can read.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, LOCATION, ORIGIN, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use url::form_urlencoded;

use super::app::App;
use super::built_site::{CONTACT_SENT_PATH, DOWNLOAD_STARTED_PATH};
use super::endpoints::{read_contact_message, read_download_order};
use super::fields::Fields;
use super::problem::{ErrorCode, Problem, RETRY_AFTER_SECONDS};
use super::representation::HTML;
use super::response::{read_or_post_only, text_response};
use super::{body, headers};
use crate::actions::{send_contact, start_download};
use crate::domain::consent::Via;
use crate::domain::signup::DownloadOrder;
use crate::domain::text::Source;
use crate::site::{Form, FormErrors, FormValues, PageName};

/// People never see this field, so only a program fills it in; a password manager may be one, and
/// is told so.
const HONEYPOT: &str = "website_confirm";

/// What the site's own forms name as their source, with JavaScript and without.
const SOURCE: &str = "site";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// `/download`: takes the form of the home page; whoever just looks is led to it.
pub(crate) async fn download(State(app): State<App>, request: Request) -> Response {
    if request.method() == Method::GET || request.method() == Method::HEAD {
        return see_other("/#download");
    }
    take(&app, request, PageName::Home, async |fields| {
        let order = read_download_order(fields, Via::Site)?;
        start_download(app.service(), DownloadOrder { source: Source::parse(SOURCE).ok(), ..order }).await?;
        Ok(DOWNLOAD_STARTED_PATH)
    })
    .await
}

/// `POST /contact`: takes the form of the contact page.
pub(crate) async fn contact(State(app): State<App>, request: Request) -> Response {
    take(&app, request, PageName::Contact, async |fields| {
        send_contact(app.service(), read_contact_message(fields)?).await?;
        Ok(CONTACT_SENT_PATH)
    })
    .await
}

/// Reads a form, lets `act` do what it asks, and leads on; or shows the page again with what was
/// typed and what was wrong.
async fn take(
    app: &App,
    request: Request,
    page: PageName,
    act: impl AsyncFnOnce(Fields) -> Result<&'static str, Problem>,
) -> Response {
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        return read_or_post_only();
    }
    let Ok(body) = body::read(&head.headers, body).await else {
        return back(app, page, FormValues::default(), &refusal("The form did not arrive whole, or was too large."));
    };
    let pairs: Vec<(String, String)> = form_urlencoded::parse(&body).into_owned().collect();
    let typed = typed(&pairs);
    let outcome = async {
        check_sender(app, &head.headers)?;
        act(fields(pairs)?).await
    };
    match outcome.await {
        Ok(next) => see_other(next),
        Err(problem) => back(app, page, typed, &problem),
    }
}

/// The members that a form stands for. A field left empty is one that was not sent.
fn fields(pairs: Vec<(String, String)>) -> Result<Fields, Problem> {
    if pairs.iter().any(|(name, value)| name == HONEYPOT && !value.is_empty()) {
        return Err(refusal(
            "A field that people do not see was filled in, perhaps by a password manager. It is empty again now: \
             please send the form once more.",
        ));
    }
    let filled = pairs.into_iter().filter(|(name, value)| name != HONEYPOT && !value.is_empty());
    // Browsers send a line break as two characters, whatever was typed.
    Ok(Fields::of_form(filled.map(|(name, value)| (name, value.replace("\r\n", "\n")))))
}

/// A page of another site may not send our forms for its visitors. Who does not say where the form
/// comes from is let in: old browsers, and tools.
fn check_sender(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    let foreign = match headers.get(SEC_FETCH_SITE) {
        // The browser's own word: it knows by which of its names the site was reached.
        Some(site) => !matches!(site.as_bytes(), b"same-origin" | b"none"),
        None => headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes() != app.base_url().as_str().as_bytes()),
    };
    if foreign {
        return Err(refusal("This form was sent from another site. Please fill it in here and send it again."));
    }
    if headers.get(CONTENT_TYPE).is_some_and(|kind| !kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"))
    {
        return Err(refusal("This form was sent in a way that this page does not understand. Please send it again."));
    }
    Ok(())
}

fn refusal(detail: &str) -> Problem {
    Problem::new(ErrorCode::InvalidBody, detail)
}

fn typed(pairs: &[(String, String)]) -> FormValues {
    let value = |name: &str| pairs.iter().find(|(given, _)| given == name).map_or("", |(_, value)| value).to_owned();
    FormValues {
        email: value("email"),
        updates: !value("updates").is_empty(),
        name: value("name"),
        message: value("message"),
    }
}

/// The page again, nothing typed lost, each sentence beside its field.
fn back(app: &App, page: PageName, values: FormValues, problem: &Problem) -> Response {
    let mut errors = FormErrors::default();
    for fault in &problem.faults {
        match fault.pointer.as_ref() {
            "#/email" => errors.email.clone_from(&fault.detail),
            "#/name" => errors.name.clone_from(&fault.detail),
            "#/message" => errors.message.clone_from(&fault.detail),
            _ => errors.form.clone_from(&fault.detail),
        }
    }
    if problem.faults.is_empty() {
        errors.form.clone_from(&problem.detail);
    }
    let made = app.built();
    let mut response = match made.site.render_with_form(page, &Form { values, errors }) {
        Ok(html) => Response::new(Body::from(html)),
        Err(failure) => {
            tracing::error!(%failure, "a form could not be shown again");
            text_response(
                StatusCode::INTERNAL_SERVER_ERROR,
                "Something went wrong on our side. Please go back and try again.\n",
            )
        }
    };
    *response.status_mut() = problem.code.status();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
    headers::keep_private(response.headers_mut());
    if problem.code == ErrorCode::Unavailable {
        response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
    }
    response
}

fn see_other(location: &'static str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(location));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

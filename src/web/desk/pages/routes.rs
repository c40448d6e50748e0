//! Which request leads to which page, and who may send it.

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Method};

use super::failure::DeskFailure;
use super::form::Form;
use super::visit::{RELEASES, Visit, see_other};
use super::{activity, inbox, letters, overview, people, release, releases, sign_in, site};
use crate::web::app::App;
use crate::web::desk::access::{Place, ROOT};
use crate::web::headers::PRIVATE;
use crate::web::refusal::ClientLimit;
use crate::web::shell;

/// Responds to a browser.
pub(in crate::web::desk) async fn respond(app: &App, place: Place, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    if let Some(file) = shell::file(path).filter(|_| reads(&head.method)) {
        return file;
    }
    let handled = async {
        app.limits.count(ClientLimit::DeskRequests, &head).map_err(DeskFailure::OverLimit)?;
        match head.method {
            Method::GET | Method::HEAD => show(app, &place, &head).await,
            Method::POST => {
                // Before the body is read.
                if !place.is_origin_of(&head.headers) {
                    return Err(DeskFailure::OtherOrigin);
                }
                // Its body may be a disk image.
                if path == RELEASES {
                    return Box::pin(releases::publish(app, &place, &head, body)).await;
                }
                change(app, &place, &head, body).await
            }
            _ => Err(DeskFailure::Method),
        }
    };
    let response = match handled.await {
        Ok(response) => response,
        Err(failure) => {
            let mut response = failure.respond(app);
            if head.method == Method::POST {
                // The body may be unread.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response
        }
    };
    (PRIVATE, response).into_response()
}

fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// The parts of the path below the desk.
fn segments(head: &Parts) -> Vec<&str> {
    let below = head.uri.path().strip_prefix(ROOT).unwrap_or_default();
    below.split('/').skip(1).collect()
}

async fn show(app: &App, place: &Place, head: &Parts) -> Result<Response, DeskFailure> {
    let segments = segments(head);
    match segments.as_slice() {
        ["sign-in"] => return Ok(sign_in::page(app, head.uri.query())),
        ["sign-in", token] => return sign_in::link_page(app, place, token).await,
        _ => {}
    }
    let Some(visit) = Visit::begin(app, place, head).await? else { return Ok(see_other("/desk/sign-in")) };
    let (query, fields) = (head.uri.query(), Form::of_query(head.uri.query()));
    match segments.as_slice() {
        [] => Ok(overview::page(&visit, query).await),
        ["inbox"] => inbox::page(&visit, &fields).await,
        ["inbox", id] => inbox::message(&visit, id).await,
        ["inbox", id, "discard"] => inbox::ask_to_discard(&visit, id).await,
        ["people"] => people::page(&visit, &fields).await,
        ["people", key] => people::person(&visit, key).await,
        ["letters"] => letters::page(&visit).await,
        ["letters", "drafts", id] => letters::editor(&visit, id).await,
        ["letters", "drafts", id, "preview"] => letters::preview(&visit, id).await,
        ["letters", "drafts", id, "images", image] => letters::image(&visit, id, image).await,
        ["letters", "drafts", id, "send"] => letters::ask(&visit, id).await,
        ["letters", "drafts", id, "delete"] => letters::ask_to_delete(&visit, id).await,
        ["letters", id] => letters::progress(&visit, id).await,
        ["letters", id, "preview"] => letters::sent_letter(&visit, id).await,
        ["letters", id, "images", image] => letters::sent_image(&visit, id, image).await,
        ["letters", id, "recipients"] => letters::recipients(&visit, id, &fields).await,
        ["releases"] => releases::page(&visit, &fields).await,
        ["release", version] => release::page(&visit, version).await,
        ["release", version, "withdraw"] => release::ask_to_withdraw(&visit, version).await,
        ["notes"] => release::notes(&visit, &fields).await,
        ["site"] => site::page(&visit).await,
        ["site", "check"] => site::check(&visit).await,
        ["activity"] => activity::page(&visit, &fields).await,
        _ => Err(DeskFailure::NotFound),
    }
}

async fn change(app: &App, place: &Place, head: &Parts, body: Body) -> Result<Response, DeskFailure> {
    let segments = segments(head);
    match segments.as_slice() {
        ["sign-in"] => return sign_in::mail_link(app, place, head).await,
        ["sign-in", token] => return sign_in::use_link(app, place, head, token).await,
        _ => {}
    }
    let Some(visit) = Visit::begin(app, place, head).await? else { return Err(DeskFailure::SignedOut) };
    // It reads its own body, which is larger than those of the others.
    if let ["letters", "drafts", id] = segments.as_slice() {
        return letters::save(&visit, id, head, body).await;
    }
    let form = Form::read(&head.headers, body).await?;
    match segments.as_slice() {
        ["sign-out"] => sign_in::sign_out(&visit).await,
        ["inbox"] => inbox::search(&visit, &form).await,
        ["inbox", "retry"] => inbox::retry_all(&visit).await,
        ["inbox", id, "answered"] => inbox::mark_answered(&visit, id, &form).await,
        ["inbox", id, "unanswered"] => inbox::mark_unanswered(&visit, id, &form).await,
        ["inbox", id, "retry"] => inbox::retry(&visit, id).await,
        ["inbox", id, "discard"] => inbox::discard(&visit, id).await,
        ["people"] => people::search(&visit, &form).await,
        ["people", "person"] => people::person_by_address(&visit, &form).await,
        ["people", "record"] => people::record(&visit, &form).await,
        ["people", "suppress"] => people::suppress(&visit, &form).await,
        ["people", "unsuppress"] => people::unsuppress(&visit, &form).await,
        ["people", "erase"] => people::erase(&visit, &form).await,
        ["letters", "new"] => letters::create(&visit).await,
        ["letters", "drafts", id, "images", "remove"] => letters::remove_image(&visit, id, &form).await,
        ["letters", "drafts", id, "send"] => letters::begin(&visit, id, &form).await,
        ["letters", "drafts", id, "delete"] => letters::delete(&visit, id).await,
        ["letters", id, "stop"] => letters::stop(&visit, id).await,
        ["letters", id, "go-on"] => letters::go_on(&visit, id).await,
        ["letters", id, "copy"] => letters::copy(&visit, id).await,
        ["letters", id, "recipients"] => letters::recipients(&visit, id, &form).await,
        ["release", version] => release::edit(&visit, version, &form).await,
        ["release", version, "withdraw"] => release::withdraw(&visit, version, &form).await,
        ["release", version, "restore"] => release::restore(&visit, version).await,
        ["notes"] => Ok(release::preview(&visit, form.text("notes"))),
        ["site", "read-again"] => site::read_again(&visit).await,
        ["sessions", "end-all"] => site::end_all_sessions(&visit).await,
        ["sessions", "end"] => site::end_session(&visit, &form).await,
        _ => Err(DeskFailure::NotFound),
    }
}

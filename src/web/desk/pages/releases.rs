//! The list of releases, how they spread, and the form that publishes one.
//!
//! The path is beside those of the API for tokens, which are below `/desk/releases/`. So the page of one release is at
//! `/desk/release/`.

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio_util::io::StreamReader;

use super::failure::DeskFailure;
use super::form::{Form, SentFile};
use super::pager::{pager, start};
use super::release::{show_known, state};
use super::release_form::{Refused, new_release, typed, version};
use super::visit::{RELEASES as PATH, Visit, release_path, see_other};
use crate::actions::{PublishFailure, Uploaded, check_end, check_upload};
use crate::domain::limits::{DESK_PAGE_ROWS, MAX_FORM_BYTES};
use crate::domain::paging::{Page, PageStart};
use crate::domain::releases::{Reason, Release, Releases, TRAILER_SIZE, Version};
use crate::domain::time::Day;
use crate::web::app::App;
use crate::web::dashboard;
use crate::web::desk::access::Place;
use crate::web::desk::api::problem::DeskProblem;
use crate::web::desk::releases::{body_length, chunks, publish as publish_image, release_store};
use crate::web::releases::feeds::size;

pub(super) async fn page(visit: &Visit<'_>, query: &Form) -> Result<Response, DeskFailure> {
    list(visit, query, None).await
}

/// With a form that was refused, to be sent again.
async fn list(visit: &Visit<'_>, query: &Form, refused: Option<(&Form, Refused)>) -> Result<Response, DeskFailure> {
    let releases = visit.database().releases().await?;
    let page = page_of(&releases, &start(query, |version| Version::parse(version).ok()));
    let status = refused.as_ref().map_or(StatusCode::OK, |(_, refused)| refused.status);
    let form = refused.as_ref().map_or_else(Form::default, |(form, _)| (*form).clone());
    let shown = json!({
        "title": "Releases",
        "releases": page.items.iter().map(|release| row(release, &releases)).collect::<Vec<_>>(),
        "unreadable": releases.unreadable(),
        "pager": pager(&page, (PATH, &[]), false, |release| release.version.to_string()),
        "form": typed(&form),
        "refused": refused.as_ref().map(|(_, refused)| &refused.text),
        "invalid": refused.as_ref().and_then(|(_, refused)| refused.field),
        "notes_path": "/desk/notes",
        "update_checks": dashboard::update_checks(visit.app).await?,
    });
    Ok(visit.page_with_frame(status, "releases.html", PATH, shown))
}

/// The highest version first.
fn page_of<'a>(releases: &'a Releases, start: &PageStart<Version>) -> Page<&'a Release> {
    let limit = DESK_PAGE_ROWS + 1;
    let found: Vec<_> = match start {
        PageStart::Newest => releases.iter().take(limit).collect(),
        PageStart::OlderThan(place) => releases.iter().filter(|release| release.version < *place).take(limit).collect(),
        PageStart::NewerThan(place) => {
            let newer: Vec<_> = releases.iter().take_while(|release| release.version > *place).collect();
            newer.into_iter().rev().take(limit).collect()
        }
    };
    if start.leads_to_newest(found.len(), DESK_PAGE_ROWS) {
        return page_of(releases, &PageStart::Newest);
    }
    Page::new(start, found, DESK_PAGE_ROWS)
}

fn row(release: &Release, releases: &Releases) -> Value {
    json!({
        "version": release.version.as_str(),
        "path": release_path(&release.version),
        "date": release.published.date(),
        "day": Day::of(release.published).long(),
        "channel": release.channel.as_str(),
        "is_stable": release.channel.is_stable(),
        "size": size(release.length),
        "state": state(release, releases),
        "is_newest": releases.newest() == Some(release),
        "is_withdrawn": release.withdrawn.is_some(),
        "reason": release.withdrawn.as_ref().and_then(|withdrawal| withdrawal.reason.as_ref()).map(Reason::as_str),
    })
}

/// Publishes the disk image of a form, which is read to disk after everything else is known to be right.
pub(super) async fn publish(app: &App, place: &Place, head: &Parts, body: Body) -> Result<Response, DeskFailure> {
    let Some(visit) = Visit::begin(app, place, head).await? else { return Err(DeskFailure::SignedOut) };
    let (form, file) = match Form::read_to_file(&head.headers, chunks(app, body)).await {
        Err(_) if app.stopping.is_cancelled() => return Err(DeskFailure::Refused(PublishFailure::Stopped.into())),
        read => read?,
    };
    match publish_form(&visit, head, &form, file).await {
        Ok(None) => Ok(StatusCode::NO_CONTENT.into_response()),
        Ok(Some(Uploaded::New(release))) => {
            Ok(see_other(&format!("{}?done=published", release_path(&release.version))))
        }
        Ok(Some(Uploaded::Known(release))) => show_known(&visit, &release, &form).await,
        Err(refused) => {
            let mut response = list(&visit, &Form::default(), Some((&form, refused))).await?;
            // The image may be unread.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            Ok(response)
        }
    }
}

/// Returns nothing if it only checked: before the script sends an image, it asks with the length and the end of it.
async fn publish_form(
    visit: &Visit<'_>,
    head: &Parts,
    form: &Form,
    file: Option<SentFile>,
) -> Result<Option<Uploaded>, Refused> {
    let new_release = new_release(version(form)?, form)?;
    let file = file.ok_or_else(Refused::without_file)?;
    if let Ok(length) = form.text("length").parse() {
        let (built, mut end) = (visit.app.built(), Vec::new());
        check_upload(&release_store(visit.app, &built), &new_release, Some(&(length..=length)))
            .await
            .map_err(DeskProblem::from)?;
        // What did not arrive is no end of an image.
        let _ = StreamReader::new(file).take(TRAILER_SIZE as u64).read_to_end(&mut end).await;
        return check_end(&end, length).map(|()| None).map_err(|failure| DeskProblem::from(failure).into());
    }
    // Beside the image there are the fields, and the end of the form, which is far shorter than they may be.
    let most = body_length(&head.headers)?;
    let length = most.saturating_sub(2 * MAX_FORM_BYTES)..=most;
    let uploaded = publish_image(visit.app, &visit.actor(), new_release, file, length).await;
    Ok(Some(uploaded.map_err(DeskProblem::from)?))
}

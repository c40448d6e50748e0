//! Publishes, describes, withdraws and lists releases.

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use serde_json::Value;

use super::problem::{DeskError, DeskProblem};
use crate::actions::{ChangeFailure, NewRelease, Uploaded, edit_release, release_record, withdraw_release};
use crate::domain::desk::{Actor, Change};
use crate::domain::releases::{Notes, Reason, Release, ReleaseEdit, Releases, Version};
use crate::domain::tokens::{CredentialName, TokenSecret};
use crate::web::app::App;
use crate::web::body::{self, BodyError};
use crate::web::desk::releases::{Credential, body_length, chunks, publish, show_everywhere};
use crate::web::response::json_response;

/// The body of the request is the disk image. It is not read before everything else is known to be right.
pub(super) async fn upload(
    app: &App,
    (by, secret): (&CredentialName, TokenSecret),
    new_release: NewRelease,
    head: &Parts,
    body: Body,
) -> Result<Response, DeskProblem> {
    let (length, stop) = (body_length(&head.headers)?, app.stopping.child_token());
    let (by, image) = ((&token(by), Credential::Token(secret)), chunks(&stop, body));
    let (status, release) = match publish(app, by, new_release, image, length..=length, stop).await? {
        Uploaded::New(release) => (StatusCode::CREATED, release),
        Uploaded::Known(release) => (StatusCode::OK, release),
    };
    let releases = app.service.store.releases().await?;
    Ok(respond(status, &release_record(&release, &releases)))
}

pub(super) async fn set_notes(
    app: &App,
    by: &CredentialName,
    version: &Version,
    head: &Parts,
    body: Body,
) -> Result<Response, DeskProblem> {
    let service = &app.service;
    find(&service.store.releases().await?, version)?;
    let invalid = |why: &str| DeskProblem::new(DeskError::INVALID_NOTES, format!("The notes cannot be used: {why}."));
    let text = body::read(&head.headers, body).await.map_err(|error| match error {
        BodyError::TooLarge => invalid("they are larger than 64 KiB"),
        BodyError::TimedOut | BodyError::Incomplete => {
            DeskProblem::new(DeskError::INCOMPLETE, "The notes did not arrive to their end.")
        }
    })?;
    let text = str::from_utf8(&text).map_err(|_| invalid("they are not UTF-8"))?;
    let notes = Notes::parse(text).map_err(|why| invalid(&why.to_string()))?;
    let edit = ReleaseEdit { notes: Some(notes), ..ReleaseEdit::default() };
    edit_release(&service.store, version, &edit, false, service.clock.now()).await?;
    show_everywhere(app, &token(by), Change::EditedRelease(version.clone())).await;
    show(app, version).await
}

/// A release that is withdrawn already stays so.
pub(super) async fn withdraw(
    app: &App,
    by: &CredentialName,
    version: &Version,
    reason: Option<Reason>,
) -> Result<Response, DeskProblem> {
    let service = &app.service;
    match withdraw_release(&service.store, version, reason, service.clock.now()).await {
        Ok(()) => show_everywhere(app, &token(by), Change::WithdrewRelease(version.clone())).await,
        Err(ChangeFailure::AlreadyWithdrawn { .. }) => {}
        Err(failure) => return Err(failure.into()),
    }
    show(app, version).await
}

pub(super) async fn show(app: &App, version: &Version) -> Result<Response, DeskProblem> {
    let releases = app.service.store.releases().await?;
    Ok(respond(StatusCode::OK, &release_record(find(&releases, version)?, &releases)))
}

pub(super) async fn list(app: &App) -> Result<Response, DeskProblem> {
    let releases = app.service.store.releases().await?;
    Ok(respond(StatusCode::OK, &releases.iter().map(|release| release_record(release, &releases)).collect()))
}

fn find<'a>(releases: &'a Releases, version: &Version) -> Result<&'a Release, DeskProblem> {
    let unknown = || DeskProblem::new(DeskError::NOT_FOUND, format!("There is no release {version}."));
    releases.find_version(version).ok_or_else(unknown)
}

fn respond(status: StatusCode, record: &Value) -> Response {
    json_response(status, format!("{record:#}\n"))
}

fn token(name: &CredentialName) -> Actor {
    Actor::Token(name.clone())
}

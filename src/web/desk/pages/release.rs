//! One release: what is known of it, its notes, and what makers change of it.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde_json::json;

use super::confirm::Confirmation;
use super::failure::DeskFailure;
use super::form::Form;
use super::release_form::{Refused, edit as changes, stored, typed};
use super::releases::state;
use super::visit::{RELEASES as LIST, Visit, release_path, see_other};
use crate::actions::{ChangeFailure, ImageStore, check_withdrawable, edit_release, restore_release, withdraw_release};
use crate::domain::desk::Change;
use crate::domain::limits::MAX_REASON_CHARS;
use crate::domain::releases::{BuildNumber, Reason, Release, Releases, Signature, Version};
use crate::site::nested_to_html;
use crate::web::dashboard::format::grouped;
use crate::web::desk::releases::show_everywhere;
use crate::web::headers::FRAMED_POLICY;
use crate::web::releases::feeds::{image_url, size};
use crate::web::shell;

/// Finds the release that a path names.
async fn find(visit: &Visit<'_>, version: &str) -> Result<(Releases, Version), DeskFailure> {
    let version = Version::parse(version).map_err(|_| DeskFailure::NotFound)?;
    let releases = visit.database().releases().await?;
    if releases.find_version(&version).is_some() { Ok((releases, version)) } else { Err(DeskFailure::NotFound) }
}

pub(super) async fn page(visit: &Visit<'_>, version: &str) -> Result<Response, DeskFailure> {
    let (releases, version) = find(visit, version).await?;
    show(visit, &releases, &version, None)
}

/// With a form that was refused, to be sent again, or with what else was refused.
fn show(
    visit: &Visit<'_>,
    releases: &Releases,
    version: &Version,
    refused: Option<(Option<&Form>, &Refused)>,
) -> Result<Response, DeskFailure> {
    let release = releases.find_version(version).ok_or(DeskFailure::NotFound)?;
    let status = refused.map_or(StatusCode::OK, |(_, refused)| refused.status);
    let form = refused.and_then(|(form, _)| form);
    let path = release_path(&release.version);
    let shown = json!({
        "title": format!("Release {}", release.version),
        "version": release.version.as_str(),
        "path": path,
        "facts": facts(visit, release, releases),
        "image": (release.withdrawn.is_none()).then(|| image_url(release, &visit.app.base_url)),
        "is_withdrawn": release.withdrawn.is_some(),
        "form": form.map_or_else(|| stored(release), typed),
        "refused": refused.map(|(_, refused)| &refused.text),
        "invalid": refused.and_then(|(_, refused)| refused.field),
        "notes_path": format!("/desk/notes?version={}", release.version),
    });
    Ok(visit.page_with_frame(status, "release.html", LIST, shown))
}

/// What is known of a release, in words.
fn facts(visit: &Visit<'_>, release: &Release, releases: &Releases) -> Vec<(&'static str, String)> {
    let app = visit.app;
    let minimum_macos = match (&release.minimum_macos, &app.built().site.facts.minimum_macos) {
        (Some(version), _) => Some(version.to_string()),
        (None, of_site) => of_site.as_ref().map(|version| format!("{version}, as site.toml says")),
    };
    let place = match (&release.external_url, app.service.catalog.images()) {
        (Some(url), _) => format!("on another host: {url}"),
        (None, ImageStore::Folder(_)) => "in releases_dir".to_owned(),
        (None, ImageStore::Bucket(_)) => "in the bucket".to_owned(),
    };
    let withdrawn = release.withdrawn.as_ref().map(|withdrawal| {
        let reason = withdrawal.reason.as_ref().map(|reason| format!(": {reason}"));
        format!("on {}{}", withdrawal.at.minute(), reason.unwrap_or_default())
    });
    let phased = match release.phased.days() {
        0 => "everybody at once".to_owned(),
        days => format!("over {days} days"),
    };
    let facts = [
        ("State", Some(state(release, releases))),
        ("Withdrawn", withdrawn),
        ("Published", Some(release.published.minute())),
        ("Channel", Some(release.channel.to_string())),
        ("Build", release.build.as_ref().map(BuildNumber::to_string)),
        ("Minimum macOS", minimum_macos),
        ("Offered to", Some(phased)),
        ("Critical", release.critical.then(|| "yes".to_owned())),
        ("File", Some(release.file.to_string())),
        ("Size", Some(format!("{}, {} bytes", size(release.length), grouped(release.length)))),
        ("Image", Some(place)),
        ("SHA-256", Some(release.sha256.hex())),
        ("EdDSA signature", release.signature.as_ref().map(Signature::to_string)),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

pub(super) async fn edit(visit: &Visit<'_>, version: &str, form: &Form) -> Result<Response, DeskFailure> {
    let (releases, version) = find(visit, version).await?;
    let release = releases.find_version(&version).ok_or(DeskFailure::NotFound)?;
    let refused = match changes(release, form) {
        Err(refused) => refused,
        Ok(edit) => match edit_release(visit.database(), &version, &edit, false, visit.now).await {
            Ok(()) => return Ok(changed(visit, &version, Change::EditedRelease, "edited").await),
            Err(failure) => refuse(failure)?,
        },
    };
    show(visit, &releases, &version, Some((Some(form), &refused)))
}

/// What a page says of a change that was refused.
fn refuse(failure: ChangeFailure) -> Result<Refused, DeskFailure> {
    match failure {
        ChangeFailure::Store(failure) => Err(failure.into()),
        ChangeFailure::Unknown(_) => Err(DeskFailure::NotFound),
        refused => Ok(Refused::new(refused.to_string())),
    }
}

async fn changed(visit: &Visit<'_>, version: &Version, change: fn(Version) -> Change, done: &str) -> Response {
    show_everywhere(visit.app, &visit.actor(), change(version.clone())).await;
    see_other(&format!("{}?done={done}", release_path(version)))
}

pub(super) async fn ask_to_withdraw(visit: &Visit<'_>, version: &str) -> Result<Response, DeskFailure> {
    let (releases, version) = find(visit, version).await?;
    if let Err(failure) = check_withdrawable(&releases, &version) {
        return show(visit, &releases, &version, Some((None, &refuse(failure)?)));
    }
    let confirmation = Confirmation {
        title: "Withdraw this release?",
        about: version.to_string(),
        text: vec![
            "It can no longer be downloaded, and its number cannot be used again.".to_owned(),
            "The image is kept, and you can put the release back. Who has it already keeps it.".to_owned(),
        ],
        button: "Withdraw the release",
        action: &format!("{}/withdraw", release_path(&version)),
        fields: &[],
        line: Some(("reason", "Why, for everybody to read (may be empty)", MAX_REASON_CHARS)),
        back: &release_path(&version),
    };
    Ok(confirmation.page(visit, LIST))
}

pub(super) async fn withdraw(visit: &Visit<'_>, version: &str, form: &Form) -> Result<Response, DeskFailure> {
    let (releases, version) = find(visit, version).await?;
    let text = form.text("reason").trim();
    let reason = (!text.is_empty()).then(|| Reason::parse(text)).transpose();
    let reason = reason.map_err(|why| DeskFailure::Invalid(format!("The reason cannot be used: {why}.")))?;
    match withdraw_release(visit.database(), &version, reason, visit.now).await {
        Ok(()) => Ok(changed(visit, &version, Change::WithdrewRelease, "withdrawn").await),
        Err(failure) => show(visit, &releases, &version, Some((None, &refuse(failure)?))),
    }
}

pub(super) async fn restore(visit: &Visit<'_>, version: &str) -> Result<Response, DeskFailure> {
    let (releases, version) = find(visit, version).await?;
    match restore_release(visit.database(), visit.app.service.catalog.images(), &version, false).await {
        Ok(()) => Ok(changed(visit, &version, Change::RestoredRelease, "restored").await),
        Err(failure) => show(visit, &releases, &version, Some((None, &refuse(failure)?))),
    }
}

/// The notes of a release, for the frame beside the form.
pub(super) async fn notes(visit: &Visit<'_>, query: &Form) -> Result<Response, DeskFailure> {
    if query.text("version").is_empty() {
        return Ok(preview(visit, ""));
    }
    let (releases, version) = find(visit, query.text("version")).await?;
    let release = releases.find_version(&version).ok_or(DeskFailure::NotFound)?;
    Ok(preview(visit, release.notes.as_str()))
}

/// Notes as the page of releases shows them.
pub(super) fn preview(visit: &Visit<'_>, markdown: &str) -> Response {
    let page = json!({ "notes": nested_to_html(markdown, "notes") });
    ([FRAMED_POLICY], shell::render(visit.app, StatusCode::OK, "notes.html", &visit.frame(LIST), page)).into_response()
}

//! One release: what is known of it, its notes, and what makers change of it.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde_json::json;

use super::confirm::Confirmation;
use super::failure::DeskFailure;
use super::form::Form;
use super::release_form::{Refused, as_edit, edit as changes, stored, typed};
use super::visit::{RELEASES as LIST, Visit, release_path, see_other};
use crate::actions::{
    ChangeFailure, ImageStore, check_withdrawable, edit_release, restore_release, same_image_note,
    what_withdrawing_does, withdraw_release,
};
use crate::domain::desk::Change;
use crate::domain::limits::MAX_REASON_CHARS;
use crate::domain::releases::{BuildNumber, Reason, Release, Releases, Signature, Version};
use crate::site::nested_to_html;
use crate::web::dashboard::format::grouped;
use crate::web::desk::releases::show_everywhere;
use crate::web::headers::FRAMED_POLICY;
use crate::web::releases::feeds::{image_url, page_url, size};
use crate::web::shell;

/// Finds the release that a path names.
async fn find(visit: &Visit<'_>, version: &str) -> Result<(Releases, Release), DeskFailure> {
    let version = Version::parse(version).map_err(|_| DeskFailure::NotFound)?;
    let releases = visit.database().releases().await?;
    let release = releases.find_version(&version).ok_or(DeskFailure::NotFound)?.clone();
    Ok((releases, release))
}

pub(super) async fn page(visit: &Visit<'_>, version: &str) -> Result<Response, DeskFailure> {
    let (releases, release) = find(visit, version).await?;
    Ok(show(visit, &releases, &release, None))
}

/// With a form that was refused, to be sent again, or with what else was refused.
fn show(
    visit: &Visit<'_>,
    releases: &Releases,
    release: &Release,
    refused: Option<(Option<&Form>, &Refused)>,
) -> Response {
    let status = refused.map_or(StatusCode::OK, |(_, refused)| refused.status);
    let form = refused.and_then(|(form, _)| form);
    let (path, base_url) = (release_path(&release.version), &visit.app.base_url);
    let is_offered = release.withdrawn.is_none();
    let shown = json!({
        "title": format!("Release {}", release.version),
        "version": release.version.as_str(),
        "path": path,
        "facts": facts(visit, release, releases),
        "image": is_offered.then(|| image_url(release, base_url)),
        "public_page": is_offered.then(|| page_url(release, base_url)),
        "remarks": if is_offered { remarks(visit, release, releases) } else { Vec::new() },
        "is_withdrawn": !is_offered,
        "form": form.map_or_else(|| stored(release), typed),
        "refused": refused.map(|(_, refused)| &refused.text),
        "invalid": refused.and_then(|(_, refused)| refused.field),
        "notes_path": format!("/desk/notes?version={}", release.version),
    });
    visit.page_with_frame(status, "release.html", LIST, shown)
}

/// After a version was sent again with its image: the page of the release, with what was typed if that is something else.
pub(super) async fn show_known(visit: &Visit<'_>, release: &Release, form: &Form) -> Result<Response, DeskFailure> {
    let Some(form) = as_edit(release, form) else {
        return Ok(see_other(&format!("{}?done=known", release_path(&release.version))));
    };
    let text = format!(
        "Nothing was changed yet: {} was published before, with the same image. What you typed is in the form below: press Save \
         to change the release.",
        release.version
    );
    let refused = Refused { status: StatusCode::CONFLICT, ..Refused::new(text) };
    Ok(show(visit, &visit.database().releases().await?, release, Some((Some(&form), &refused))))
}

/// What makers may want to change.
fn remarks(visit: &Visit<'_>, release: &Release, releases: &Releases) -> Vec<String> {
    let built = visit.app.built();
    let links = built.site.notes.iter().filter(|note| note.is_about(release)).map(ToString::to_string);
    same_image_note(release, releases).into_iter().chain(links).collect()
}

/// The word for a release.
pub(super) fn state(release: &Release, releases: &Releases) -> String {
    let channel = &release.channel;
    let is_newest = releases.newest_of(channel) == Some(release);
    match (release.withdrawn.is_some(), channel.is_stable()) {
        (true, _) => "withdrawn".to_owned(),
        (false, true) if is_newest => "newest".to_owned(),
        (false, true) => "earlier".to_owned(),
        (false, false) if is_newest => format!("newest of {channel}"),
        (false, false) => format!("earlier {channel}"),
    }
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
        (None, ImageStore::Folder(_)) => "on the disk of the service".to_owned(),
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
        ("Offered to", release.withdrawn.is_none().then_some(phased)),
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
    let (releases, release) = find(visit, version).await?;
    let refused = match changes(&release, form) {
        Err(refused) => refused,
        Ok(edit) => match edit_release(visit.database(), &release.version, &edit, false, visit.now).await {
            Ok(()) => return Ok(changed(visit, &release, Change::EditedRelease, "edited").await),
            Err(failure) => refuse(failure)?,
        },
    };
    Ok(show(visit, &releases, &release, Some((Some(form), &refused))))
}

/// What a page says of a change that was refused.
fn refuse(failure: ChangeFailure) -> Result<Refused, DeskFailure> {
    match failure {
        ChangeFailure::Store(failure) => Err(failure.into()),
        ChangeFailure::Unknown(_) => Err(DeskFailure::NotFound),
        refused => Ok(Refused::new(refused.to_string())),
    }
}

async fn changed(visit: &Visit<'_>, release: &Release, change: fn(Version) -> Change, done: &str) -> Response {
    show_everywhere(visit.app, &visit.actor(), change(release.version.clone())).await;
    see_other(&format!("{}?done={done}", release_path(&release.version)))
}

pub(super) async fn ask_to_withdraw(visit: &Visit<'_>, version: &str) -> Result<Response, DeskFailure> {
    let (releases, release) = find(visit, version).await?;
    if let Err(failure) = check_withdrawable(&releases, &release.version) {
        return Ok(show(visit, &releases, &release, Some((None, &refuse(failure)?))));
    }
    let path = release_path(&release.version);
    let confirmation = Confirmation {
        title: "Withdraw this release?",
        about: release.version.to_string(),
        text: what_withdrawing_does(&releases, &release).into(),
        button: "Withdraw the release",
        action: &format!("{path}/withdraw"),
        fields: &[],
        line: Some(("reason", "Why, for everybody to read (may be empty)", MAX_REASON_CHARS)),
        back: &path,
    };
    Ok(confirmation.page(visit, LIST))
}

pub(super) async fn withdraw(visit: &Visit<'_>, version: &str, form: &Form) -> Result<Response, DeskFailure> {
    let (releases, release) = find(visit, version).await?;
    let text = form.text("reason").trim();
    let reason = (!text.is_empty()).then(|| Reason::parse(text)).transpose();
    let reason = reason.map_err(|why| DeskFailure::Invalid(format!("The reason cannot be used: {why}.")))?;
    match withdraw_release(visit.database(), &release.version, reason, visit.now).await {
        Ok(()) => Ok(changed(visit, &release, Change::WithdrewRelease, "withdrawn").await),
        Err(failure) => Ok(show(visit, &releases, &release, Some((None, &refuse(failure)?)))),
    }
}

pub(super) async fn restore(visit: &Visit<'_>, version: &str) -> Result<Response, DeskFailure> {
    let (releases, release) = find(visit, version).await?;
    match restore_release(visit.database(), visit.app.service.catalog.images(), &release.version, false).await {
        Ok(()) => Ok(changed(visit, &release, Change::RestoredRelease, "restored").await),
        Err(failure) => Ok(show(visit, &releases, &release, Some((None, &refuse(failure)?)))),
    }
}

/// The notes of a release, for the frame beside the form.
pub(super) async fn notes(visit: &Visit<'_>, query: &Form) -> Result<Response, DeskFailure> {
    if query.text("version").is_empty() {
        return Ok(preview(visit, ""));
    }
    let (_, release) = find(visit, query.text("version")).await?;
    Ok(preview(visit, release.notes.as_str()))
}

/// Notes as the page of releases shows them.
pub(super) fn preview(visit: &Visit<'_>, markdown: &str) -> Response {
    let page = json!({ "notes": nested_to_html(markdown, "notes") });
    ([FRAMED_POLICY], shell::render(visit.app, StatusCode::OK, "notes.html", &visit.frame(LIST), page)).into_response()
}

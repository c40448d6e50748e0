//! A draft: written, saved, looked at as it will arrive, tested, deleted.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use serde_json::{Value, json};
use uuid::Uuid;

use super::draft_form::DraftForm;
use super::shown;
use crate::actions::{LetterSender, TestCopyFailure, create_draft, letter_settings, send_test_copy};
use crate::domain::desk::Change;
use crate::domain::letters::{Draft, DraftFields, Letter};
use crate::domain::limits::{MAX_LETTER_BYTES, MAX_LETTER_IMAGES, MAX_LETTER_WITH_IMAGES_BYTES};
use crate::domain::text::sanitize_line;
use crate::domain::time::Timestamp;
use crate::mail::Mailer;
use crate::web::desk::pages::confirm::Confirmation;
use crate::web::desk::pages::failure::DeskFailure;
use crate::web::desk::pages::form::Form;
use crate::web::desk::pages::visit::{DRAFTS, LETTERS, Visit, see_other};

/// A new draft has something to write over.
const NEW: &str = "# What is new\n\nHello,\n\n";

pub(in crate::web::desk::pages) async fn create(visit: &Visit<'_>) -> Result<Response, DeskFailure> {
    let id = create_draft(visit.database(), NEW, visit.now).await?;
    Ok(see_other(&format!("{DRAFTS}/{id}")))
}

pub(super) async fn find(visit: &Visit<'_>, id: &str) -> Result<Draft, DeskFailure> {
    let id = Uuid::parse_str(id).map_err(|_| DeskFailure::NotFound)?;
    visit.database().draft(id).await?.ok_or(DeskFailure::NotFound)
}

/// Returns why no letter can be sent with these settings.
pub(super) fn not_ready(visit: &Visit<'_>) -> Option<String> {
    let settings = letter_settings(&visit.app.settings).map(drop);
    settings.and_then(|()| LetterSender::check_base_url(&visit.app.base_url)).err().map(|why| why.to_string())
}

/// The page with the text on one side, and the letter on the other.
pub(in crate::web::desk::pages) async fn editor(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    show(visit, id, None).await
}

/// With `refused`, the page has what the form has, and why that was not saved, tested or sent.
async fn show(visit: &Visit<'_>, id: &str, refused: Option<(&DraftFields, &str)>) -> Result<Response, DeskFailure> {
    let draft = find(visit, id).await?;
    let (saved, letter) = (draft.fields(), draft.letter());
    let (status, fields, refused) = match refused {
        Some((fields, why)) => (StatusCode::UNPROCESSABLE_ENTITY, fields, Some(why)),
        None => (StatusCode::OK, &saved, None),
    };
    let images = draft.images.iter().map(|image| {
        let used = draft.markdown.contains(&format!("({})", image.name.as_str()));
        json!({ "name": image.name.as_str(), "id": image.content_id(), "used": used })
    });
    let test_to = visit.app.settings.mail.as_ref().map(|mail| mail.contact_to.email().as_typed());
    let page = json!({
        "title": sanitize_line(saved.title()),
        "path": format!("{DRAFTS}/{id}"),
        "subject": fields.subject,
        "preview": fields.preview,
        "body": fields.body,
        "saved": draft.saved.unix_millis(),
        "saved_at": time_of_day(draft.saved),
        "refused": refused,
        "images": images.collect::<Vec<_>>(),
        "shown_subject": letter.as_ref().ok().map(|letter| sanitize_line(&letter.subject)),
        "problem": letter.err().map(|why| format!("It cannot be sent yet: {why}.")),
        "not_ready": not_ready(visit),
        "test_to": test_to,
    });
    Ok(visit.page_with_frame(status, "draft.html", LETTERS, page))
}

fn time_of_day(at: Timestamp) -> String {
    at.rfc3339().get(11..16).unwrap_or_default().to_owned()
}

/// Saves what the form has, and goes on with what the maker pressed. The script of the page gets JSON.
pub(in crate::web::desk::pages) async fn save(
    visit: &Visit<'_>,
    id: &str,
    head: &Parts,
    body: Body,
) -> Result<Response, DeskFailure> {
    let (draft, form) = (find(visit, id).await?, DraftForm::read(&head.headers, body).await?);
    let Written { saved, refused } = write(visit, &draft, &form).await?;
    if form.then == "json" {
        let images = form.images.iter().map(|image| image.name.as_str()).filter(|_| refused.is_none());
        let written = json!({
            "saved": saved.map(Timestamp::unix_millis),
            "at": saved.map(time_of_day),
            "images": images.collect::<Vec<_>>(),
            "refused": refused,
        });
        return Ok(([(CONTENT_TYPE, "application/json")], written.to_string()).into_response());
    }
    let path = format!("{DRAFTS}/{id}");
    let refused = match (refused, form.then.as_str()) {
        (Some(why), _) => why,
        (None, "send") => return Ok(see_other(&format!("{path}/send"))),
        (None, "test") => match test(visit, &find(visit, id).await?).await {
            Ok(()) => return Ok(see_other(&format!("{path}?done=tested"))),
            Err(why) => why,
        },
        _ => return Ok(see_other(&format!("{path}?done=saved"))),
    };
    show(visit, id, Some((&form.fields, &refused))).await
}

/// When the text was saved, if it was, and why something was not.
struct Written {
    saved: Option<Timestamp>,
    refused: Option<String>,
}

/// Saves the text, then the images.
async fn write(visit: &Visit<'_>, draft: &Draft, form: &DraftForm) -> Result<Written, DeskFailure> {
    let (database, markdown) = (visit.database(), form.fields.join());
    let refuse = |saved, why| Ok(Written { saved, refused: Some(why) });
    if markdown.len() > MAX_LETTER_BYTES {
        let most = MAX_LETTER_BYTES / 1024;
        return refuse(None, format!("Nothing was saved: the text is longer than {most} KiB."));
    }
    let before = form.saved.unwrap_or(draft.saved);
    let saved = visit.now.max(draft.saved.after(Duration::from_millis(1)));
    if !database.save_draft(draft.id, &markdown, before, saved).await? {
        return refuse(None, ELSEWHERE.to_owned());
    }
    if let Some(why) = &form.refused_image {
        return refuse(Some(saved), format!("The text is saved, and no image was added: {why}"));
    }
    let kept = draft.images.iter().filter(|image| form.images.iter().all(|new| new.name != image.name));
    let sizes: Vec<_> = kept.map(Arc::as_ref).chain(&form.images).map(|image| image.bytes.len()).collect();
    let is_too_large = sizes.iter().sum::<usize>() + markdown.len() > MAX_LETTER_WITH_IMAGES_BYTES;
    if !form.images.is_empty() && (is_too_large || sizes.len() > MAX_LETTER_IMAGES) {
        return refuse(
            Some(saved),
            format!(
                "The text is saved, and no image was added: a letter has at most {MAX_LETTER_IMAGES} images, and 1 MiB together \
                 with them. Make them smaller, or remove one."
            ),
        );
    }
    for image in &form.images {
        database.set_draft_image(draft.id, image).await?;
    }
    Ok(Written { saved: Some(saved), refused: None })
}

const ELSEWHERE: &str = "This draft was saved in another window since you opened it. To keep what stands here, press Save once more. \
                         To keep the other one, open the draft again.";

/// Sends a test copy to the makers. Returns why it was not sent.
async fn test(visit: &Visit<'_>, draft: &Draft) -> Result<(), String> {
    let not_sent = |why: &dyn Display| format!("The test copy was not sent: {}", sanitize_line(&why.to_string()));
    let (app, letter) = (visit.app, draft.letter().map_err(|why| not_sent(&format!("{why}.")))?);
    let (mail, _) = letter_settings(&app.settings).map_err(|why| not_sent(&why))?;
    let mailer = Mailer::from_settings(mail).map_err(|why| not_sent(&why))?;
    let (templates, to) = (app.mail_templates.get(), (mail.contact_to.email(), app.settings.letters_archive));
    match send_test_copy(&mailer, &templates, &letter, &app.base_url, to, visit.now).await {
        Ok(()) => Ok(()),
        Err(TestCopyFailure::Site(failure)) => Err(not_sent(&failure)),
        Err(failure @ TestCopyFailure::NotSent(_)) => Err(sanitize_line(&failure.to_string())),
    }
}

/// Returns the letter of a draft, or why it cannot be sent.
pub(super) fn letter_of(visit: &Visit<'_>, draft: &Draft) -> Result<Letter, DeskFailure> {
    let letter =
        draft.letter().map_err(|why| DeskFailure::Invalid(format!("The letter cannot be sent yet: {why}.")))?;
    shown::rendered(visit, &letter).map_err(DeskFailure::Invalid)?;
    Ok(letter)
}

/// The letter as it will arrive.
pub(in crate::web::desk::pages) async fn preview(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let letter = find(visit, id).await?.letter().map_err(|why| format!("It cannot be sent yet: {why}."));
    Ok(shown::frame(visit, letter, &format!("{DRAFTS}/{id}")))
}

pub(in crate::web::desk::pages) async fn image(
    visit: &Visit<'_>,
    id: &str,
    content_id: &str,
) -> Result<Response, DeskFailure> {
    shown::image(&find(visit, id).await?.images, content_id)
}

pub(in crate::web::desk::pages) async fn remove_image(
    visit: &Visit<'_>,
    id: &str,
    form: &Form,
) -> Result<Response, DeskFailure> {
    let draft = find(visit, id).await?;
    visit.database().delete_draft_image(draft.id, form.text("name")).await?;
    Ok(see_other(&format!("{DRAFTS}/{id}")))
}

pub(in crate::web::desk::pages) async fn ask_to_delete(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let draft = find(visit, id).await?;
    let confirmation = Confirmation {
        title: "Delete this draft?",
        about: sanitize_line(draft.fields().title()),
        text: vec!["Its text and its images are deleted for good.".to_owned()],
        button: "Delete the draft",
        action: &format!("{DRAFTS}/{id}/delete"),
        fields: &[],
        line: None,
        back: &format!("{DRAFTS}/{id}"),
    };
    Ok(confirmation.page(visit, LETTERS))
}

pub(in crate::web::desk::pages) async fn delete(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let draft = find(visit, id).await?;
    visit.database().delete_draft(draft.id).await?;
    visit.record(Change::DeletedDraft).await;
    Ok(see_other(&format!("{LETTERS}?done=draft-deleted")))
}

/// What the templates of a draft and of its sending show of it.
pub(super) fn heading(draft: &Draft) -> Value {
    json!({ "title": sanitize_line(draft.fields().title()), "path": format!("{DRAFTS}/{}", draft.id) })
}

//! A draft: written, saved, looked at as it will arrive, tested, deleted.

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName};
use http::request::Parts;
use serde_json::{Value, json};
use uuid::Uuid;

use super::draft_form::DraftForm;
use crate::actions::{LetterSender, TestCopyFailure, create_draft, letter_settings, placeholder, send_test_copy};
use crate::config::InvalidSettings;
use crate::domain::desk::Change;
use crate::domain::letters::{Draft, Letter};
use crate::domain::limits::{MAX_LETTER_BYTES, MAX_LETTER_WITH_IMAGES_BYTES};
use crate::domain::text::sanitize_line;
use crate::domain::time::Timestamp;
use crate::mail::Mailer;
use crate::web::desk::pages::confirm::Confirmation;
use crate::web::desk::pages::failure::DeskFailure;
use crate::web::desk::pages::form::Form;
use crate::web::desk::pages::visit::{DRAFTS, LETTERS, Visit, see_other};
use crate::web::representation::HTML;

/// A new draft has something to write over.
const NEW: &str = "# What is new\n\nHello,\n\n";

/// Nothing but the letter: no script, and no request to anywhere else.
const PREVIEW_POLICY: [(HeaderName, &str); 1] = [(
    CONTENT_SECURITY_POLICY,
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; frame-ancestors 'self'; base-uri 'none'; \
     form-action 'none'",
)];

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
    let draft = find(visit, id).await?;
    let (fields, letter) = (draft.fields(), draft.letter());
    let images = draft.images.iter().map(|image| {
        let used = draft.markdown.contains(&format!("({})", image.name.as_str()));
        json!({ "name": image.name.as_str(), "used": used })
    });
    let test_to = visit.app.settings.mail.as_ref().map(|mail| mail.contact_to.email().as_typed());
    let page = json!({
        "title": sanitize_line(fields.title()),
        "path": format!("{DRAFTS}/{id}"),
        "subject": fields.subject,
        "preview": fields.preview,
        "body": fields.body,
        "saved": draft.saved.unix_millis(),
        "saved_at": time_of_day(draft.saved),
        "images": images.collect::<Vec<_>>(),
        "problem": letter.err().map(|why| format!("It cannot be sent yet: {why}.")),
        "not_ready": not_ready(visit),
        "test_to": test_to,
    });
    Ok(visit.page_with_frame(StatusCode::OK, "draft.html", LETTERS, page))
}

fn time_of_day(at: Timestamp) -> String {
    at.rfc3339().get(11..16).unwrap_or_default().to_owned()
}

/// Saves what the form has, and goes on with what the maker pressed.
pub(in crate::web::desk::pages) async fn save(
    visit: &Visit<'_>,
    id: &str,
    head: &Parts,
    body: Body,
) -> Result<Response, DeskFailure> {
    let (draft, form) = (find(visit, id).await?, DraftForm::read(&head.headers, body).await?);
    let markdown = form.fields.join();
    if markdown.len() > MAX_LETTER_BYTES {
        return Err(DeskFailure::Invalid(format!("The text is longer than {} KiB.", MAX_LETTER_BYTES / 1024)));
    }
    let kept = draft.images.iter().filter(|image| form.images.iter().all(|new| new.name != image.name));
    let bytes: usize =
        kept.map(|image| image.bytes.len()).chain(form.images.iter().map(|image| image.bytes.len())).sum();
    if bytes + markdown.len() > MAX_LETTER_WITH_IMAGES_BYTES {
        return Err(DeskFailure::Invalid("A letter and its images have at most 1 MiB together.".to_owned()));
    }
    let (before, saved) =
        (form.saved.unwrap_or(draft.saved), visit.now.max(draft.saved.after(std::time::Duration::from_millis(1))));
    let database = visit.database();
    if !database.save_draft(draft.id, &markdown, before, saved).await? {
        let text = "This draft was saved in another window since you opened it, so nothing was changed. Go back, copy what you \
                    wrote, and open the draft again.";
        return Err(DeskFailure::Invalid(text.to_owned()));
    }
    for image in &form.images {
        database.set_draft_image(draft.id, image).await?;
    }
    let path = format!("{DRAFTS}/{id}");
    match form.then.as_str() {
        "json" => {
            let saved = json!({ "saved": saved.unix_millis(), "at": time_of_day(saved) });
            Ok(([(CONTENT_TYPE, "application/json")], saved.to_string()).into_response())
        }
        "test" => {
            test(visit, &find(visit, id).await?).await?;
            Ok(see_other(&format!("{path}?done=tested")))
        }
        "send" => Ok(see_other(&format!("{path}/send"))),
        _ => Ok(see_other(&format!("{path}?done=saved"))),
    }
}

/// Sends a test copy to the makers.
async fn test(visit: &Visit<'_>, draft: &Draft) -> Result<(), DeskFailure> {
    let (app, letter) = (visit.app, letter_of(draft)?);
    let invalid = |why: InvalidSettings| DeskFailure::Invalid(format!("The test copy was not sent: {why}"));
    let (mail, _) = letter_settings(&app.settings).map_err(invalid)?;
    let mailer = Mailer::from_settings(mail).map_err(invalid)?;
    let (templates, recipient) = (app.mail_templates.get(), placeholder(&app.base_url, visit.now));
    let to = (mail.contact_to.email(), app.settings.letters_archive);
    let sent = send_test_copy(&mailer, &templates, &letter, &recipient, to, visit.now).await;
    sent.map_err(|failure: TestCopyFailure| DeskFailure::Invalid(sanitize_line(&failure.to_string())))
}

/// Returns the letter of a draft, or why it cannot be sent.
pub(super) fn letter_of(draft: &Draft) -> Result<Letter, DeskFailure> {
    draft.letter().map_err(|why| DeskFailure::Invalid(format!("The letter cannot be sent yet: {why}.")))
}

/// The letter as it will arrive, for a frame of the page.
pub(in crate::web::desk::pages) async fn preview(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let draft = find(visit, id).await?;
    let html = match draft.letter() {
        Ok(letter) => {
            let (app, recipient) = (visit.app, placeholder(&visit.app.base_url, visit.now));
            let rendered = app.mail_templates.get().letter(&letter, &recipient, app.settings.letters_archive);
            let rendered = rendered.and_then(|rendered| rendered.check_size().map(|()| rendered));
            let url =
                |image: &crate::domain::letters::LetterImage| format!("{DRAFTS}/{id}/images/{}", image.name.as_str());
            rendered.map(|rendered| rendered.html_with_images(url)).map_err(|failure| failure.to_string())
        }
        Err(why) => Err(format!("It cannot be sent yet: {why}.")),
    };
    let response = match html {
        Ok(html) => (StatusCode::OK, [(CONTENT_TYPE, HTML)], html).into_response(),
        Err(why) => visit.bare_page("draft_problem.html", json!({ "text": why })),
    };
    Ok((PREVIEW_POLICY, response).into_response())
}

pub(in crate::web::desk::pages) async fn image(
    visit: &Visit<'_>,
    id: &str,
    name: &str,
) -> Result<Response, DeskFailure> {
    let draft = find(visit, id).await?;
    let image = draft.images.iter().find(|image| image.name.as_str() == name).ok_or(DeskFailure::NotFound)?;
    Ok(([(CONTENT_TYPE, image.format.as_str())], image.bytes.clone()).into_response())
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

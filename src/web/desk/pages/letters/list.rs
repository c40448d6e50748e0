//! The list: drafts, and letters that were begun.

use axum::response::Response;
use serde_json::{Value, json};

use super::draft::not_ready;
use crate::domain::letters::{Draft, LetterRun};
use crate::domain::text::sanitize_line;
use crate::store::StartedLetter;
use crate::web::dashboard::format::grouped_quantity;
use crate::web::desk::pages::failure::DeskFailure;
use crate::web::desk::pages::visit::{DRAFTS, LETTERS, Visit};

pub(in crate::web::desk::pages) async fn page(visit: &Visit<'_>) -> Result<Response, DeskFailure> {
    let database = visit.database();
    let (drafts, without_recipients) = (database.drafts().await?, database.letters_without_recipients().await?);
    let without_recipients = without_recipients.into_iter().map(|(id, subject, run)| {
        let (path, subject) = (format!("{LETTERS}/{id}"), sanitize_line(&subject));
        json!({ "path": path, "subject": subject, "state": state(run, None), "counts": "nobody yet" })
    });
    let letters = database.letters().await?;
    let shown = json!({
        "title": "Letters",
        "not_ready": not_ready(visit),
        "drafts": drafts.iter().map(draft).collect::<Vec<_>>(),
        "letters": without_recipients.chain(letters.iter().map(letter)).collect::<Vec<_>>(),
    });
    Ok(visit.page("letters.html", LETTERS, shown))
}

fn draft(draft: &Draft) -> Value {
    json!({
        "path": format!("{DRAFTS}/{}", draft.id),
        "title": sanitize_line(draft.fields().title()),
        "at": draft.saved.rfc3339(),
        "when": draft.saved.minute(),
    })
}

fn letter(letter: &StartedLetter) -> Value {
    json!({
        "path": format!("{LETTERS}/{}", letter.id),
        "subject": sanitize_line(&letter.subject),
        "state": state(letter.run, Some(letter.counts.waiting)),
        "counts": grouped_quantity(letter.counts.sent, "person", "people"),
        "at": letter.started_at.rfc3339(),
        "when": letter.started_at.minute(),
    })
}

/// The word for a letter in a list. `waiting` is `None` until its recipients are known.
pub(super) const fn state(run: LetterRun, waiting: Option<u64>) -> &'static str {
    match (waiting, run) {
        // Until the service has recorded what became of the last copy.
        (_, LetterRun::Service) => "sending",
        (Some(0), _) => "sent",
        (_, LetterRun::Stopped) => "stopped",
        (_, LetterRun::Command) => "not finished",
    }
}

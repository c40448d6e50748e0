//! Sending: the question before, the progress, stopping and going on, and who got the letter.

use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

use super::draft::{find, heading, letter_of, not_ready};
use super::list::state;
use super::shown;
use crate::actions::{create_draft, opt_in_sentences, send_by_service, stop_letter};
use crate::domain::desk::Change;
use crate::domain::letters::{Letter, LetterRun, RecipientFilter, RecipientState, letter_path};
use crate::domain::limits::DESK_PAGE_ROWS;
use crate::domain::sha256::Sha256;
use crate::domain::text::{capitalised, quantity, sanitize_line};
use crate::store::{ListedRecipient, StartedLetter};
use crate::web::dashboard::format::{grouped, grouped_quantity};
use crate::web::desk::pages::failure::DeskFailure;
use crate::web::desk::pages::form::Form;
use crate::web::desk::pages::pager::link;
use crate::web::desk::pages::visit::{DRAFTS, LETTERS, Visit, see_other};

/// The page that says who gets the letter, and who does not and why, and asks.
pub(in crate::web::desk::pages) async fn ask(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let (draft, database, settings) = (find(visit, id).await?, visit.database(), &visit.app.settings);
    let letter = letter_of(visit, &draft)?;
    let started = database.letter(&letter.id).await?;
    let forecast = database.letter_forecast(started.as_ref().map(|_| &letter.id), visit.now).await?;
    let problem =
        not_ready(visit).or_else(|| started.is_some().then(|| ALREADY_BEGUN.to_owned())).or_else(|| forecast.nobody());
    let archive = settings.letters_archive.then(|| visit.app.base_url.to(&letter_path(&letter.id, &letter.subject)));
    let seconds = forecast.recipients / u64::from(settings.letter_rate);
    let page = json!({
        "title": format!("Send “{}”?", sanitize_line(&letter.subject)),
        "draft": heading(&draft),
        "letter": letter.id.hex(),
        "problem": problem,
        "people": grouped_quantity(forecast.recipients, "person", "people"),
        "others": forecast.others_in_words(),
        "opt_ins": opt_in_sentences(database.opt_in_counts().await?, settings.confirm_updates),
        "archive": archive,
        "takes": duration(seconds),
    });
    Ok(visit.page_with_frame(StatusCode::OK, "letter_ask.html", LETTERS, page))
}

const ALREADY_BEGUN: &str = "This very letter was sent before, or begun to be. Change its text to send another one.";

/// Has the service send the letter of a draft, which ends being one.
pub(in crate::web::desk::pages) async fn begin(
    visit: &Visit<'_>,
    id: &str,
    form: &Form,
) -> Result<Response, DeskFailure> {
    let (draft, database) = (find(visit, id).await?, visit.database());
    let letter = letter_of(visit, &draft)?;
    if let Some(why) = not_ready(visit) {
        return Err(DeskFailure::Invalid(why));
    }
    if let Some(nobody) = database.letter_forecast(None, visit.now).await?.nobody() {
        return Err(DeskFailure::Invalid(nobody));
    }
    // It may have been stopped before its recipients were known.
    let run = database.letter_run(&letter.id).await?.map_or(LetterRun::Command, |(run, _)| run);
    if run == LetterRun::Service || database.letter(&letter.id).await?.is_some() {
        return Err(DeskFailure::Invalid(ALREADY_BEGUN.to_owned()));
    }
    if form.text("letter") != letter.id.hex() {
        return Ok(see_other(&format!("{DRAFTS}/{id}/send?done=changed-meanwhile")));
    }
    if !send_by_service(database, &letter, run, visit.now).await? {
        return Err(DeskFailure::Invalid(ALREADY_BEGUN.to_owned()));
    }
    visit.record(Change::StartedLetter(letter.subject.clone())).await;
    database.delete_draft(draft.id).await?;
    Ok(see_other(&format!("{LETTERS}/{}", letter.id.hex())))
}

fn parse(id: &str) -> Result<Sha256, DeskFailure> {
    Sha256::from_hex(id).ok_or(DeskFailure::NotFound)
}

pub(in crate::web::desk::pages) async fn progress(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let (id, database) = (parse(id)?, visit.database());
    let Some((run, reason)) = database.letter_run(&id).await? else { return Err(DeskFailure::NotFound) };
    let started = database.letter(&id).await?;
    let subject = match &started {
        Some(letter) => letter.subject.clone(),
        None => stored(visit, &id).await?.subject,
    };
    let skipped = match &started {
        Some(letter) if letter.counts.skipped > 0 => database.skip_reasons(&letter.id).await?,
        _ => Vec::new(),
    };
    let is_complete = state(run, started.as_ref().map(|letter| letter.counts.waiting)) == "sent";
    let page = json!({
        "title": sanitize_line(&subject),
        "path": format!("{LETTERS}/{}", id.hex()),
        "run": run.as_str(),
        "is_complete": is_complete,
        "is_live": !is_complete && run != LetterRun::Stopped,
        "reason": reason.map(|reason| sanitize_line(&reason)),
        "not_ready": not_ready(visit),
        "letter": started.as_ref().map(|letter| view(visit, letter)),
        "skipped": skipped.iter().map(|(reason, people)| format!("{reason} ({})", grouped(*people))).collect::<Vec<_>>().join(", "),
        "states": RecipientFilter::ALL.map(RecipientFilter::as_str),
    });
    Ok(visit.page_with_frame(StatusCode::OK, "letter.html", LETTERS, page))
}

async fn stored(visit: &Visit<'_>, id: &Sha256) -> Result<Letter, DeskFailure> {
    visit.database().stored_letter(id).await?.ok_or(DeskFailure::NotFound)
}

/// The letter as it arrives.
pub(in crate::web::desk::pages) async fn sent_letter(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let letter = stored(visit, &parse(id)?).await?;
    Ok(shown::frame(visit, Ok(letter), &format!("{LETTERS}/{id}")))
}

pub(in crate::web::desk::pages) async fn sent_image(
    visit: &Visit<'_>,
    id: &str,
    content_id: &str,
) -> Result<Response, DeskFailure> {
    shown::image(&stored(visit, &parse(id)?).await?.images, content_id)
}

/// Begins a draft with the text and the images of a letter.
pub(in crate::web::desk::pages) async fn copy(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let (letter, database) = (stored(visit, &parse(id)?).await?, visit.database());
    let draft = create_draft(database, &letter.markdown, visit.now).await?;
    for image in &letter.images {
        database.set_draft_image(draft, image).await?;
    }
    Ok(see_other(&format!("{DRAFTS}/{draft}")))
}

fn view(visit: &Visit<'_>, letter: &StartedLetter) -> Value {
    let counts = &letter.counts;
    let done = counts.recipients - counts.waiting;
    let left = duration(counts.waiting / u64::from(visit.app.settings.letter_rate));
    let state = state(letter.run, Some(counts.waiting));
    let sentence = match state {
        "sending" => format!("{} of {} done, {left} left.", grouped(done), grouped(counts.recipients)),
        "sent" => format!("Sent to {}.", grouped_quantity(counts.sent, "person", "people")),
        _ => format!("{} of {} done, {} waiting.", grouped(done), grouped(counts.recipients), grouped(counts.waiting)),
    };
    let archive = letter.archived.then(|| Sha256::from_hex(&letter.id)).flatten();
    json!({
        "state": state,
        "sentence": sentence,
        "done": done,
        "recipients": counts.recipients,
        "numbers": counts.named().map(|(name, number)| json!({ "name": name, "number": grouped(number) })),
        "has_uncertain": counts.uncertain > 0,
        "started": letter.started_at.minute(),
        "archive": archive.map(|id| visit.app.base_url.to(&letter_path(&id, &letter.subject))),
    })
}

/// About how long that many seconds are.
fn duration(seconds: u64) -> String {
    match seconds {
        0..2 => "a moment".to_owned(),
        2..120 => format!("about {seconds} seconds"),
        120..7200 => format!("about {}", quantity(seconds / 60, "minute", "minutes")),
        _ => format!("about {}", quantity(seconds / 3600, "hour", "hours")),
    }
}

pub(in crate::web::desk::pages) async fn stop(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let (id, database) = (parse(id)?, visit.database());
    let letter = stored(visit, &id).await?;
    if stop_letter(database, &id).await? {
        visit.record(Change::StoppedLetter(letter.subject)).await;
    }
    Ok(see_other(&format!("{LETTERS}/{}", id.hex())))
}

pub(in crate::web::desk::pages) async fn go_on(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let (id, database) = (parse(id)?, visit.database());
    if let Some(why) = not_ready(visit) {
        return Err(DeskFailure::Invalid(why));
    }
    let letter = stored(visit, &id).await?;
    let (run, _) = database.letter_run(&id).await?.ok_or(DeskFailure::NotFound)?;
    if run != LetterRun::Service && send_by_service(database, &letter, run, visit.now).await? {
        visit.record(Change::ContinuedLetter(letter.subject)).await;
    }
    Ok(see_other(&format!("{LETTERS}/{}", id.hex())))
}

/// Who got a letter, in the order of addresses. The place in the list is an address, so the pages are asked for by a form.
pub(in crate::web::desk::pages) async fn recipients(
    visit: &Visit<'_>,
    id: &str,
    form: &Form,
) -> Result<Response, DeskFailure> {
    let (id, database) = (parse(id)?, visit.database());
    let letter = database.letter(&id).await?.ok_or(DeskFailure::NotFound)?;
    let (filter, path) = (RecipientFilter::parse(form.text("state")), format!("{LETTERS}/{}", id.hex()));
    let mut found = database.listed_recipients(&letter.id, filter, form.text("after"), DESK_PAGE_ROWS + 1).await?;
    let has_more = found.len() > DESK_PAGE_ROWS;
    found.truncate(DESK_PAGE_ROWS);
    let filters = std::iter::once((None, "All")).chain(RecipientFilter::ALL.map(|state| (Some(state), state.as_str())));
    let filters = filters.map(|(state, name)| {
        let word = state.map_or("", RecipientFilter::as_str);
        json!({ "name": capitalised(name), "path": link(&format!("{path}/recipients"), &[("state", word)]), "current": state == filter })
    });
    let page = json!({
        "title": "Recipients",
        "path": path,
        "subject": sanitize_line(&letter.subject),
        "filters": filters.collect::<Vec<_>>(),
        "state": filter.map(RecipientFilter::as_str),
        "recipients": found.iter().map(recipient).collect::<Vec<_>>(),
        "after": found.last().filter(|_| has_more).map(|recipient| &recipient.address),
    });
    Ok(visit.page("letter_recipients.html", LETTERS, page))
}

fn recipient(ListedRecipient { email, state, at, trouble, bounce, .. }: &ListedRecipient) -> Value {
    json!({
        "email": sanitize_line(email),
        "state": state,
        // For somebody who waits, it is the place in the order.
        "at": (*state != RecipientState::Waiting.as_str()).then(|| at.rfc3339()),
        "when": at.minute(),
        "trouble": trouble.as_deref().map(sanitize_line),
        "bounce": bounce,
    })
}

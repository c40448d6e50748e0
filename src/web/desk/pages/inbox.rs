//! The inbox: messages of visitors, read, searched, marked as answered, mailed again, and discarded.

use axum::response::Response;
use serde_json::{Value, json};
use uuid::Uuid;

use super::confirm::Confirmation;
use super::failure::DeskFailure;
use super::form::Form;
use super::pager::{link, pager, start};
use super::visit::{INBOX as PATH, Visit, see_other};
use crate::actions::{Discarded, delivery_in_words, discard_messages, inbox_page, retry_message};
use crate::domain::contact::{MessageSearch, reference};
use crate::domain::desk::Change;
use crate::domain::limits::DESK_PAGE_ROWS;
use crate::domain::paging::PageStart;
use crate::domain::text::{excerpt, sanitize, sanitize_line};
use crate::domain::time::Timestamp;
use crate::store::{DeliveryState, InboxEntry, InboxFilter, InboxQuery};

/// How much of a message its row shows: more than fits in a line.
const ROW_CHARS: usize = 160;

/// The filters, and what the page calls them. The first one is for a list that names none.
const FILTERS: [(InboxFilter, &str); 4] = [
    (InboxFilter::Unanswered, "Unanswered"),
    (InboxFilter::All, "All"),
    (InboxFilter::Waiting, "Not mailed yet"),
    (InboxFilter::Failed, "Failed"),
];

pub(super) async fn page(visit: &Visit<'_>, query: &Form) -> Result<Response, DeskFailure> {
    let filter = InboxFilter::parse(query.text("filter")).unwrap_or(InboxFilter::Unanswered);
    list(visit, query, InboxQuery { filter, search: None }).await
}

/// Looks in all messages. Without anything to look for, it is the inbox.
pub(super) async fn search(visit: &Visit<'_>, form: &Form) -> Result<Response, DeskFailure> {
    match MessageSearch::parse(form.text("search")) {
        None => Ok(see_other(PATH)),
        search => list(visit, form, InboxQuery { filter: InboxFilter::All, search }).await,
    }
}

async fn list(visit: &Visit<'_>, fields: &Form, query: InboxQuery) -> Result<Response, DeskFailure> {
    let start = start(fields, |id| Uuid::parse_str(id).ok());
    let (page, note) = inbox_page(visit.database(), &query, &start, DESK_PAGE_ROWS).await?;
    let (filter, searched) = (query.filter.as_str(), query.search.as_ref().map(|_| fields.text("search")));
    let of_list = [("filter", if searched.is_some() { "" } else { filter }), ("search", searched.unwrap_or_default())];
    let filters = FILTERS.map(|(filter, name)| {
        let is_current = searched.is_none() && filter == query.filter;
        json!({ "name": name, "path": link(PATH, &[("filter", filter.as_str())]), "current": is_current })
    });
    let place = ["older", "newer"].map(|name| (name, fields.text(name)));
    let marked = find(visit, fields.text("message")).await.ok();
    let next = marked.as_ref().and_then(|InboxEntry { received, answered_at, .. }| {
        let is_marked = |entry: &InboxEntry| answered_at.is_none() && entry.received.id == received.id;
        let next = page.items.iter().find(|entry| entry.received.id < received.id || is_marked(entry));
        next.or(page.items.last())
    });
    let shown = json!({
        "title": "Inbox",
        "filters": filters,
        "filter": filter,
        "searched": searched.map(sanitize_line),
        "messages": page.items.iter().map(row).collect::<Vec<_>>(),
        "note": note,
        // Where marking one as answered leads back to.
        "place": place,
        "answered": marked.as_ref().filter(|entry| entry.answered_at.is_some()).map(row),
        // Has the focus, so that the maker goes on from there.
        "next": next.map(|entry| entry.received.id),
        "pager": pager(&page, (PATH, &of_list), searched.is_some(), |entry| entry.received.id.to_string()),
    });
    Ok(visit.page("inbox.html", PATH, shown))
}

/// A message in a list.
pub(super) fn row(entry: &InboxEntry) -> Value {
    let contact = &entry.received.contact;
    let text = excerpt(&sanitize_line(contact.text.as_str()), ROW_CHARS);
    json!({
        "id": entry.received.id,
        "from": sanitize_line(contact.name().unwrap_or(contact.email.as_typed())),
        "text": text,
        "is_cut": text.chars().count() == ROW_CHARS,
        "at": entry.received.at.rfc3339(),
        "when": entry.received.at.minute(),
        "state": state(entry),
        "is_answered": entry.answered_at.is_some(),
    })
}

/// The word for a message in a list.
const fn state(entry: &InboxEntry) -> &'static str {
    match (entry.answered_at, entry.state) {
        (Some(_), _) => "answered",
        (None, DeliveryState::Failed) => "not mailed",
        (None, _) => "unanswered",
    }
}

async fn find(visit: &Visit<'_>, id: &str) -> Result<InboxEntry, DeskFailure> {
    let id = Uuid::parse_str(id).map_err(|_| DeskFailure::NotFound)?;
    visit.database().messages_by_reference(&id.to_string()).await?.pop().ok_or(DeskFailure::NotFound)
}

fn path_of(entry: &InboxEntry) -> String {
    format!("{PATH}/{}", entry.received.id)
}

pub(super) async fn message(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let entry = find(visit, id).await?;
    let (received, contact) = (&entry.received, &entry.received.contact);
    let filter = if entry.answered_at.is_none() { InboxFilter::Unanswered } else { InboxFilter::All };
    let beside = async |start| -> Result<Option<String>, DeskFailure> {
        let query = InboxQuery { filter, search: None };
        Ok(visit.database().inbox_page(&query, &start, 1).await?.first().map(path_of))
    };
    let newer = beside(PageStart::NewerThan(received.id)).await?;
    let older = beside(PageStart::OlderThan(received.id)).await?;
    let shown = json!({
        "title": format!("Message {}", reference(received.id)),
        "path": path_of(&entry),
        "reference": reference(received.id),
        "name": contact.name().map(sanitize_line),
        "email": sanitize_line(contact.email.as_typed()),
        "text": sanitize(contact.text.as_str().trim()),
        "answer": received.answer_link(),
        "at": received.at.rfc3339(),
        "when": received.at.minute(),
        "is_mailed": entry.state == DeliveryState::Sent,
        "mail": delivery_in_words(&entry, Timestamp::minute),
        "error": entry.last_error.as_deref().filter(|_| entry.state != DeliveryState::Sent).map(sanitize_line),
        "has_relay": visit.app.settings.mail.is_some(),
        "answered": entry.answered_at.map(Timestamp::minute),
        "pager": { "newer": newer, "older": older, "form": null },
    });
    Ok(visit.page("inbox_message.html", PATH, shown))
}

/// Marks a message as answered, and leads back to the list.
pub(super) async fn mark_answered(visit: &Visit<'_>, id: &str, form: &Form) -> Result<Response, DeskFailure> {
    let entry = find(visit, id).await?;
    visit.database().mark_answered(&[entry.received.id], Some(visit.now)).await?;
    visit.record(Change::MarkedAnswered(1)).await;
    Ok(back_to_list(form, &entry, "answered"))
}

/// Leads to the list that the form is of, and to the place of the message there.
fn back_to_list(form: &Form, entry: &InboxEntry, done: &str) -> Response {
    let (list, id) = (["filter", "older", "newer"].map(|name| (name, form.text(name))), entry.received.id.to_string());
    see_other(&link(PATH, &[&list[..], &[("done", done), ("message", &id)]].concat()))
}

/// Leads back to the list if that undoes a mark, and else to the message.
pub(super) async fn mark_unanswered(visit: &Visit<'_>, id: &str, form: &Form) -> Result<Response, DeskFailure> {
    let entry = find(visit, id).await?;
    visit.database().mark_answered(&[entry.received.id], None).await?;
    visit.record(Change::MarkedUnanswered(1)).await;
    let is_undone = !form.text("filter").is_empty();
    Ok(if is_undone { back_to_list(form, &entry, "unanswered") } else { see_other(&path_of(&entry)) })
}

pub(super) async fn retry(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let entry = find(visit, id).await?;
    let retried = retry_message(visit.database(), &entry, visit.now).await?;
    visit.app.service.writer.new_mail().notify_one();
    visit.record(Change::RetriedMessages(retried)).await;
    Ok(see_other(&(path_of(&entry) + "?done=retried")))
}

pub(super) async fn retry_all(visit: &Visit<'_>) -> Result<Response, DeskFailure> {
    let retried = visit.database().retry_all_messages(visit.now).await?;
    visit.app.service.writer.new_mail().notify_one();
    if retried > 0 {
        visit.record(Change::RetriedMessages(retried)).await;
    }
    Ok(see_other(&(PATH.to_owned() + "?filter=waiting&done=retried")))
}

pub(super) async fn ask_to_discard(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let entry = find(visit, id).await?;
    let unmailed = "It was not mailed to you yet, so nobody will have it.";
    let text = ["It is deleted for good. Statistics stay.".to_owned()];
    let confirmation = Confirmation {
        title: "Discard this message?",
        about: format!("{}, {}", sanitize_line(entry.received.contact.email.as_typed()), entry.received.at.minute()),
        text: text.into_iter().chain((entry.state != DeliveryState::Sent).then(|| unmailed.to_owned())).collect(),
        button: "Discard the message",
        action: &format!("{}/discard", path_of(&entry)),
        fields: &[],
        line: None,
        back: &path_of(&entry),
    };
    Ok(confirmation.page(visit, PATH))
}

pub(super) async fn discard(visit: &Visit<'_>, id: &str) -> Result<Response, DeskFailure> {
    let entry = find(visit, id).await?;
    let discarded = discard_messages(visit.database(), &[entry.received.id], visit.now).await?;
    if let Discarded { stayed: 1.., .. } = discarded {
        return Err(DeskFailure::Invalid(discarded.in_words()));
    }
    visit.record(Change::DiscardedMessages(discarded.deleted)).await;
    Ok(see_other(&(PATH.to_owned() + "?done=discarded")))
}

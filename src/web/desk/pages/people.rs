//! People: totals, the list and its search, everything held of one person, and what makers do about it.
//!
//! No address of a visitor is in a path or a query. A path names a person by a key, and forms send the address in their body.

use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use serde_json::{Value, json};

use super::confirm::Confirmation;
use super::failure::DeskFailure;
use super::form::Form;
use super::inbox;
use super::pager::{link, pager, start};
use super::visit::{PEOPLE as PATH, Visit, see_other};
use crate::actions::{
    LEFT_ELSEWHERE, PeoplePage, PersonFailure, erase_person, find_person, people_page, person_facts, person_history,
    person_json, suppress_person, unsuppress_person,
};
use crate::domain::desk::Change;
use crate::domain::limits::DESK_PAGE_ROWS;
use crate::domain::mail::EmailAddress;
use crate::domain::people::{PeopleQuery, PeopleSearch, Person, PersonKey, PersonState};
use crate::domain::statistics::PeopleTotals;
use crate::domain::text::{quantity, sanitize_line};
use crate::domain::time::{Day, Timestamp};
use crate::store::PersonRecord;
use crate::web::dashboard::format::grouped;

/// The filters, and what the page calls them. `None` is everybody.
const FILTERS: [(Option<PersonState>, &str); 7] = [
    (None, "Everybody"),
    (Some(PersonState::OptedIn), "Opted in"),
    (Some(PersonState::Pending), "Pending"),
    (Some(PersonState::Unsubscribed), "Unsubscribed"),
    (Some(PersonState::Suppressed), "Suppressed"),
    (Some(PersonState::Waitlist), "Waitlist"),
    (Some(PersonState::Downloaded), "Downloaded"),
];

pub(super) async fn page(visit: &Visit<'_>, query: &Form) -> Result<Response, DeskFailure> {
    list(visit, query, None).await
}

/// Without anything to look for, it is the list.
pub(super) async fn search(visit: &Visit<'_>, form: &Form) -> Result<Response, DeskFailure> {
    let text = form.text("search").trim();
    if text.is_empty() { Ok(see_other(PATH)) } else { list(visit, form, Some(text)).await }
}

async fn list(visit: &Visit<'_>, fields: &Form, searched: Option<&str>) -> Result<Response, DeskFailure> {
    let state = PersonState::parse(fields.text("state"));
    let (search, invalid) = match searched.map(PeopleSearch::parse) {
        Some(Err(invalid)) => (None, Some(format!("This cannot be searched for: {invalid}."))),
        Some(Ok(search)) => (Some(search), None),
        None => (None, None),
    };
    let query = PeopleQuery { search, state, since: None };
    let PeoplePage { page, notes } =
        people_page(visit.database(), &query, &start(fields, PersonKey::parse), DESK_PAGE_ROWS).await?;
    // Somebody who neither downloaded nor joined is in no list.
    let exact = searched.and_then(|text| EmailAddress::parse(text).ok());
    let exact = exact.filter(|email| page.items.iter().all(|(_, person)| person.email.key() != email.key()));
    let totals = visit.app.service.cached_totals.recent(visit.database(), visit.now).await?;
    let (word, searched) = (fields.text("state"), searched.map(sanitize_line));
    let of_list = [("state", state.map_or("", |_| word)), ("search", searched.as_deref().unwrap_or_default())];
    let filters = FILTERS.map(|(filter, name)| {
        let word = filter.map_or("", PersonState::as_str);
        json!({ "name": name, "path": link(PATH, &[("state", word)]), "current": searched.is_none() && filter == state })
    });
    let shown = json!({
        "title": "People",
        "totals": totals_in_words(totals),
        "filters": filters,
        "state": state.map(PersonState::as_str),
        "state_name": FILTERS.iter().find(|(filter, _)| *filter == state).map(|(_, name)| name.to_lowercase()),
        "searched": searched,
        "invalid": invalid,
        "exact": exact.map(|email| sanitize_line(email.as_typed())),
        "people": page.items.iter().map(row).collect::<Vec<_>>(),
        "notes": notes,
        "pager": pager(&page, (PATH, &of_list), searched.is_some(), |(key, _)| key.to_string()),
    });
    Ok(visit.page("people.html", PATH, shown))
}

fn totals_in_words(
    PeopleTotals { people, opted_in, pending, suppressed }: PeopleTotals,
) -> [(&'static str, String); 4] {
    [("People", people), ("Opted in", opted_in), ("Pending", pending), ("Suppressed", suppressed)]
        .map(|(name, number)| (name, grouped(number)))
}

fn row((key, person): &(PersonKey, Person)) -> Value {
    let state = [
        (PersonState::Suppressed, "suppressed"),
        (PersonState::OptedIn, "opted in"),
        (PersonState::Pending, "pending"),
        (PersonState::Unsubscribed, "unsubscribed"),
    ];
    let state = state.into_iter().find(|(state, _)| person.is(*state)).map(|(_, word)| word);
    let downloads = (person.downloads > 0).then(|| quantity(person.downloads, "download", "downloads"));
    let known_by = downloads.into_iter().chain(person.waitlist.then(|| "waitlist".to_owned()));
    json!({
        "path": format!("{PATH}/{key}"),
        "email": sanitize_line(person.email.as_typed()),
        "state": state,
        "known_by": known_by.collect::<Vec<_>>().join(", "),
        "at": person.first_seen.rfc3339(),
        "when": person.first_seen.minute(),
    })
}

async fn by_key(visit: &Visit<'_>, key: &str) -> Result<EmailAddress, DeskFailure> {
    let key = PersonKey::parse(key).ok_or(DeskFailure::NotFound)?;
    visit.database().person_by_key(&key).await?.ok_or(DeskFailure::NotFound)
}

fn address(form: &Form) -> Result<EmailAddress, DeskFailure> {
    let invalid = |why| DeskFailure::Invalid(format!("The address cannot be used: {why}."));
    EmailAddress::parse(form.text("email")).map_err(invalid)
}

pub(super) async fn person(visit: &Visit<'_>, key: &str) -> Result<Response, DeskFailure> {
    show(visit, &by_key(visit, key).await?).await
}

/// Somebody who may be in no list, and has no key.
pub(super) async fn person_by_address(visit: &Visit<'_>, form: &Form) -> Result<Response, DeskFailure> {
    lead_to(visit, &address(form)?, "").await
}

async fn show(visit: &Visit<'_>, email: &EmailAddress) -> Result<Response, DeskFailure> {
    let base_url = &visit.app.base_url;
    let (record, unknown) = match find_person(visit.database(), email).await {
        Ok(record) => (Some(record), None),
        Err(unknown @ PersonFailure::Unknown(_)) => (None, Some(unknown.to_string())),
        Err(failure) => return Err(failure.into()),
    };
    let history = record.as_ref().map(person_history).unwrap_or_default().into_iter();
    let history = history.map(|(at, text)| json!({ "at": at.rfc3339(), "when": at.minute(), "text": text }));
    let months = record.iter().flat_map(|record| &record.months).map(|month| {
        let when = Timestamp::parse(&format!("{month}-01")).map(|start| Day::of(start).month_and_year());
        json!({ "at": month, "when": when, "text": "letter of the month sent or attempted" })
    });
    let shown = json!({
        "title": "Person",
        "email": sanitize_line(email.as_typed()),
        "unknown": unknown,
        "facts": record.as_ref().map(|record| person_facts(record, base_url, Timestamp::minute)),
        "is_suppressed": record.as_ref().is_some_and(|record| record.suppression.is_some()),
        "is_opted_in": record.as_ref().is_some_and(PersonRecord::is_opted_in),
        "history": history.chain(months).collect::<Vec<_>>(),
        "messages": record.iter().flat_map(|record| &record.messages).map(inbox::row).collect::<Vec<_>>(),
    });
    Ok(visit.page("person.html", PATH, shown))
}

/// Everything that is held of a person, as a file: what `people show --json` prints.
pub(super) async fn record(visit: &Visit<'_>, form: &Form) -> Result<Response, DeskFailure> {
    let record = find_person(visit.database(), &address(form)?).await?;
    let file = format!("{:#}\n", person_json(&record, &visit.app.base_url));
    let disposition = format!("attachment; filename=\"person-{}.json\"", visit.now.date());
    Ok(([(CONTENT_TYPE, "application/json"), (CONTENT_DISPOSITION, &disposition)], file).into_response())
}

pub(super) async fn suppress(visit: &Visit<'_>, form: &Form) -> Result<Response, DeskFailure> {
    let email = address(form)?;
    suppress_person(visit.database(), &email, visit.now).await?;
    visit.record(Change::SuppressedPerson).await;
    lead_to(visit, &email, "suppressed").await
}

pub(super) async fn unsuppress(visit: &Visit<'_>, form: &Form) -> Result<Response, DeskFailure> {
    let email = address(form)?;
    if unsuppress_person(visit.database(), &email).await?.is_some() {
        visit.record(Change::UnsuppressedPerson).await;
    }
    lead_to(visit, &email, "unsuppressed").await
}

/// Leads to the page of a person, if there is a path that names the person.
async fn lead_to(visit: &Visit<'_>, email: &EmailAddress, done: &str) -> Result<Response, DeskFailure> {
    match visit.database().person_key(email).await? {
        Some(key) => Ok(see_other(&link(&format!("{PATH}/{key}"), &[("done", done)]))),
        None => show(visit, email).await,
    }
}

/// Asks, and erases once the maker is sure.
pub(super) async fn erase(visit: &Visit<'_>, form: &Form) -> Result<Response, DeskFailure> {
    let email = address(form)?;
    let record = find_person(visit.database(), &email).await?;
    if form.text("sure") != "yes" {
        let key = visit.database().person_key(&email).await?;
        let confirmation = Confirmation {
            title: "Erase this person?",
            about: sanitize_line(record.email.as_typed()),
            text: vec![
                "Everything stored about this address is deleted for good: downloads, joins, opt-ins, messages and letters.".to_owned(),
                "Statistics stay, and so does a hash of the address where a suppression or this month's letter must be remembered."
                    .to_owned(),
                LEFT_ELSEWHERE.to_owned(),
            ],
            button: "Erase the person",
            action: "/desk/people/erase",
            fields: &[("email", email.as_typed()), ("sure", "yes")],
            line: None,
            back: &key.map_or_else(|| PATH.to_owned(), |key| format!("{PATH}/{key}")),
        };
        return Ok(confirmation.page(visit, PATH));
    }
    let erased = erase_person(visit.database(), &email, visit.now).await?;
    visit.record(Change::ErasedPerson).await;
    let text: Vec<_> = erased.left.into_iter().chain([LEFT_ELSEWHERE]).collect();
    let done = &erased.done;
    Ok(visit.page(
        "outcome.html",
        PATH,
        json!({ "title": "The person was erased", "outcome": done, "text": text, "path": PATH, "link": "To the list of people" }),
    ))
}

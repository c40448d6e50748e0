//! Everything stored about a person: found, as JSON, and in words.

use serde_json::{Value, json};

use crate::actions::contact::message_json;
use crate::domain::contact::reference;
use crate::domain::letters::UNSUBSCRIBE_PATH;
use crate::domain::mail::EmailAddress;
use crate::domain::network::BaseUrl;
use crate::domain::text::{Source, sanitize, sanitize_line};
use crate::domain::time::Timestamp;
use crate::store::{BounceRecord, ConsentRecord, EventRecord, PersonRecord, Store, StoreFailure};

/// Why nothing can be shown or erased.
#[derive(Debug, thiserror::Error)]
pub enum PersonFailure {
    #[error("Nothing is stored about {0}.")]
    Unknown(String),
    #[error("{}", .0.sentence("Nothing was done"))]
    Store(#[from] StoreFailure),
}

/// Returns everything stored about a person. A hash that only records this month's letter, or that the address was asked to
/// confirm an opt-in, counts as nothing: it cannot be erased, and is deleted automatically.
pub async fn find_person(store: &Store, email: &EmailAddress) -> Result<PersonRecord, PersonFailure> {
    let record = store.person_record(email).await?;
    let known = record.first_seen.is_some() || !record.messages.is_empty() || record.suppression.is_some();
    if known {
        return Ok(record);
    }
    let kept = match (record.months.is_empty(), record.asked_at.is_some()) {
        (true, false) => "",
        (false, false) => ", except a hash that records this month's letter",
        (true, true) => ", except a hash that records that it was asked to confirm an opt-in",
        (false, true) => {
            ", except a hash that records this month's letter, and one that records that it was asked to confirm an opt-in"
        }
    };
    Err(PersonFailure::Unknown(format!("{}{kept}", email.as_typed())))
}

fn receives_letter(person: &PersonRecord) -> bool {
    person.suppression.is_none() && person.is_opted_in()
}

fn count_events(person: &PersonRecord, kind: &str) -> usize {
    person.events.iter().filter(|event| event.kind == kind).count()
}

/// Returns everything as JSON. `docs/people.md` documents the members.
pub fn person_json(person: &PersonRecord, base_url: &BaseUrl) -> Value {
    json!({
        "email": person.email,
        "first_seen": person.first_seen,
        "updates": receives_letter(person),
        "pending": person.consents.iter().any(|consent| consent.is_pending),
        "asked_at": person.asked_at,
        "waitlist": count_events(person, "join") > 0,
        "downloads": count_events(person, "download"),
        "suppressed": person.suppression.is_some(),
        "suppression": person.suppression.map(|(at, reason)| json!({ "at": at, "reason": reason.as_str() })),
        "events": person.events,
        "consents": person.consents.iter().map(consent).collect::<Value>(),
        "messages": person.messages.iter().map(message_json).collect::<Value>(),
        "letters": person.letters,
        "letter_months": person.months,
        "unsubscribe_url": person.token.as_ref().map(|token| base_url.to(&token.path(UNSUBSCRIBE_PATH))),
    })
}

fn consent(consent: &ConsentRecord) -> Value {
    let opt_in = &consent.opt_in;
    json!({
        "at": opt_in.at,
        "via": opt_in.via.as_str(),
        "source": opt_in.source.as_ref().map(Source::as_str),
        "wording": opt_in.wording,
        "text": consent.text,
        "stands": consent.is_current,
        "pending": consent.is_pending,
        "confirmed_at": opt_in.confirmed_at,
        "withdrawn": consent.withdrawn.as_ref().map(|(at, kind)| json!({ "at": at, "how": kind })),
    })
}

/// Returns the current state as labels and values.
pub fn person_facts(
    person: &PersonRecord,
    base_url: &BaseUrl,
    time: fn(Timestamp) -> String,
) -> Vec<(&'static str, String)> {
    let yes_or_no = |yes| if yes { "yes" } else { "no" };
    let suppressed = match person.suppression {
        Some((at, reason)) => format!("since {} ({})", time(at), reason.in_words()),
        None => "no".to_owned(),
    };
    let updates = if person.consents.iter().any(|consent| consent.is_pending) {
        "no (the opt-in waits for its confirmation)"
    } else if person.is_opted_in() && person.suppression.is_some() {
        "no (opted in, but suppressed)"
    } else {
        yes_or_no(receives_letter(person))
    };
    let mut facts = vec![
        ("email", sanitize(person.email.as_typed())),
        ("first seen", person.first_seen.map_or_else(|| "never".to_owned(), time)),
        ("updates", updates.to_owned()),
        ("waitlist", yes_or_no(count_events(person, "join") > 0).to_owned()),
        ("downloads", count_events(person, "download").to_string()),
        ("suppressed", suppressed),
    ];
    facts.extend(person.token.as_ref().map(|token| ("unsubscribe", base_url.to(&token.path(UNSUBSCRIBE_PATH)))));
    facts
}

/// Returns everything that happened, in the order of time.
pub fn person_history(person: &PersonRecord) -> Vec<(Timestamp, String)> {
    let channel = |via: &str, source: Option<&str>| match source {
        Some(source) => format!("{via}, “{}”", sanitize_line(source)),
        None => via.to_owned(),
    };
    let mut history = Vec::new();
    for EventRecord { kind, at, via, source } in &person.events {
        history.push((*at, format!("{kind} ({})", channel(via, source.as_deref()))));
    }
    for ConsentRecord { opt_in, text, withdrawn, .. } in &person.consents {
        let channel = channel(opt_in.via.as_str(), opt_in.source.as_ref().map(Source::as_str));
        let wording = text
            .as_ref()
            .map_or_else(|| format!("wording {}", opt_in.wording), |text| format!("“{}”", sanitize_line(text)));
        history.push((opt_in.at, format!("opt-in ({channel}): {wording}")));
        history.extend(opt_in.confirmed_at.map(|at| (at, "opt-in confirmed by mail".to_owned())));
        history.extend(withdrawn.iter().map(|(at, kind)| (*at, format!("opt-in withdrawn ({kind})"))));
    }
    history.extend(person.asked_at.map(|at| (at, "mail that asks to confirm the opt-in".to_owned())));
    for letter in &person.letters {
        let subject = sanitize_line(&letter.subject);
        history.push((letter.at, format!("letter “{subject}”: {}", letter.state)));
        history.extend(
            letter
                .bounce
                .iter()
                .map(|BounceRecord { at, status }| (*at, format!("letter “{subject}”: bounced ({status})"))),
        );
    }
    for entry in &person.messages {
        let (received, state) = (&entry.received, entry.state.as_str());
        let mut text = format!("message {} from {} ({state}):", reference(received.id), received.contact.sender());
        for line in sanitize(received.contact.text.as_str()).lines() {
            text += if line.is_empty() { "\n" } else { "\n    " };
            text += line;
        }
        history.push((received.at, text));
    }
    history.sort_by_key(|(at, _)| *at);
    history
}

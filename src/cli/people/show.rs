//! Everything held of a person, as JSON and as lines to read.

use serde_json::{Value, json};

use crate::cli::terminal::{visible, visible_line};
use crate::domain::base_url::BaseUrl;
use crate::domain::contact::{ContactMessage, reference};
use crate::domain::text::{SenderName, Source};
use crate::domain::time::Timestamp;
use crate::store::{ConsentRecord, EventRecord, InboxEntry, LetterRecord, PersonRecord};

fn is_mailed(held: &PersonRecord) -> bool {
    held.suppression.is_none() && held.consents.iter().any(|consent| consent.stands)
}

fn has(held: &PersonRecord, kind: &str) -> usize {
    held.events.iter().filter(|event| event.kind == kind).count()
}

/// The whole answer to a data request; `docs/people.md` says what each member means.
pub(super) fn described(held: &PersonRecord, base_url: &BaseUrl) -> Value {
    json!({
        "email": held.email.as_typed(),
        "first_seen": held.first_seen.map(Timestamp::rfc3339),
        "updates": is_mailed(held),
        "waitlist": has(held, "join") > 0,
        "downloads": has(held, "download"),
        "suppressed": held.suppression.is_some(),
        "suppression": held.suppression.map(|(at, why)| json!({ "at": at.rfc3339(), "reason": why.as_str() })),
        "events": held.events.iter().map(event).collect::<Value>(),
        "consents": held.consents.iter().map(consent).collect::<Value>(),
        "messages": held.messages.iter().map(message).collect::<Value>(),
        "letters": held.letters.iter().map(letter).collect::<Value>(),
        "letter_months": held.months,
        "unsubscribe_url": held.token.as_ref().map(|token| base_url.to(&token.path())),
    })
}

fn event(event: &EventRecord) -> Value {
    json!({ "kind": event.kind, "at": event.at.rfc3339(), "via": event.via, "source": event.source })
}

fn consent(consent: &ConsentRecord) -> Value {
    let opt_in = &consent.opt_in;
    json!({
        "at": opt_in.at.rfc3339(),
        "via": opt_in.via.as_str(),
        "source": opt_in.source.as_ref().map(Source::as_str),
        "wording": opt_in.wording,
        "stands": consent.stands,
        "withdrawn": consent.withdrawn.as_ref().map(|(at, how)| json!({ "at": at.rfc3339(), "how": how })),
    })
}

/// A message with its place in the outbox, the same wherever it is shown.
pub(in crate::cli) fn message(entry: &InboxEntry) -> Value {
    let received = &entry.received;
    json!({
        "id": received.id,
        "reference": reference(received.id),
        "at": received.at.rfc3339(),
        "email": received.message.email.as_typed(),
        "name": received.message.name.as_ref().map(SenderName::as_str),
        "message": received.message.message.as_str(),
        "state": entry.progress.as_str(),
        "state_at": entry.at.rfc3339(),
        "tries": entry.tries,
        "trouble": entry.trouble,
    })
}

fn letter(letter: &LetterRecord) -> Value {
    json!({
        "letter": letter.letter,
        "subject": letter.subject,
        "state": letter.state,
        "at": letter.at.rfc3339(),
        "tries": letter.tries,
        "trouble": letter.trouble,
    })
}

/// The same to read: what holds now, then what happened, in order of time.
pub(super) fn lines(held: &PersonRecord, base_url: &BaseUrl) -> Vec<String> {
    let yes_or_no = |yes| if yes { "yes" } else { "no" };
    let suppressed = match held.suppression {
        Some((at, why)) => format!("since {} ({})", at.date(), why.as_str()),
        None => "no".to_owned(),
    };
    let mut lines = vec![
        format!("email        {}", visible(held.email.as_typed())),
        format!("first seen   {}", held.first_seen.map_or_else(|| "never".to_owned(), Timestamp::rfc3339)),
        format!("updates      {}", yes_or_no(is_mailed(held))),
        format!("waitlist     {}", yes_or_no(has(held, "join") > 0)),
        format!("downloads    {}", has(held, "download")),
        format!("suppressed   {suppressed}"),
    ];
    lines.extend(held.token.as_ref().map(|token| format!("unsubscribe  {}", base_url.to(&token.path()))));
    let mut happened = events(held);
    happened.sort_by_key(|(at, _)| *at);
    lines.extend(happened.into_iter().map(|(at, what)| format!("{}  {what}", at.rfc3339())));
    lines.extend(held.months.iter().map(|month| format!("{month}  the month's letter is taken")));
    lines
}

fn events(held: &PersonRecord) -> Vec<(Timestamp, String)> {
    let from = |via: &str, source: Option<&str>| match source {
        Some(source) => format!("{via}, “{}”", visible_line(source)),
        None => via.to_owned(),
    };
    let mut events = Vec::new();
    for EventRecord { kind, at, via, source } in &held.events {
        events.push((*at, format!("{kind} ({})", from(via, source.as_deref()))));
    }
    for ConsentRecord { opt_in, withdrawn, .. } in &held.consents {
        let through = from(opt_in.via.as_str(), opt_in.source.as_ref().map(Source::as_str));
        events.push((opt_in.at, format!("opt-in ({through}, wording {})", opt_in.wording)));
        events.extend(withdrawn.iter().map(|(at, how)| (*at, format!("opt-in taken back ({how})"))));
    }
    for letter in &held.letters {
        events.push((letter.at, format!("letter “{}”: {}", visible_line(&letter.subject), letter.state)));
    }
    for entry in &held.messages {
        let (received, state) = (&entry.received, entry.progress.as_str());
        let mut text = format!("message {} from {} ({state}):", reference(received.id), sender(&received.message));
        for line in visible(received.message.message.as_str()).lines() {
            text = format!("{text}\n    {line}");
        }
        events.push((received.at, text));
    }
    events
}

/// Whoever wrote, as they called themselves.
pub(in crate::cli) fn sender(message: &ContactMessage) -> String {
    let name = message.name.as_ref().map(SenderName::as_str).unwrap_or_default();
    visible_line(&format!("{name} <{}>", message.email.as_typed()))
}

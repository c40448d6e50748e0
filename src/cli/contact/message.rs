//! One contact message: how it is named, found and shown.

use std::collections::BTreeSet;
use std::io::BufRead;

use uuid::Uuid;

use crate::cli::failure::Failure;
use crate::cli::terminal::{format_row, sanitize_line};
use crate::domain::contact::reference;
use crate::store::{DeliveryState, InboxEntry, Store};

/// Parses a full id, or the end of one.
pub(super) fn id(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if !(8..=36).contains(&text.len()) || !text.bytes().all(is_allowed) {
        return Err("it is not a reference such as 5f2c9a01".to_owned());
    }
    Ok(Uuid::parse_str(text).map_or_else(|_| text.to_lowercase(), |id| id.to_string()))
}

/// Parses what [`id`] does, or `-` for standard input.
pub(super) fn id_or_dash(text: &str) -> Result<String, String> {
    if text == "-" { Ok(text.to_owned()) } else { id(text) }
}

pub(super) fn line(entry: &InboxEntry, width: Option<usize>) -> String {
    let received = &entry.received;
    let (email, text) = (received.contact.email.as_typed(), received.contact.text.as_str());
    let state = match (entry.state, entry.answered_at) {
        (DeliveryState::Sent, Some(_)) => "answered",
        (state, _) => state.as_str(),
    };
    let cells = [(reference(received.id), 8), (received.at.date(), 10), (state.to_owned(), 8)];
    format_row(&cells, &format!("{}  {}", sanitize_line(email), sanitize_line(text)), width)
}

pub(super) async fn find(store: &Store, id: &str) -> Result<InboxEntry, Failure> {
    let mut found = store.messages_by_reference(id).await?;
    match (found.pop(), found.is_empty()) {
        (Some(entry), true) => Ok(entry),
        (Some(_), false) => Err(Failure::new(format!(
            "More than one message has the reference {id}. `porchlight inbox list --json` shows their full ids."
        ))),
        (None, _) => Err(unknown(id)),
    }
}

/// Finds several messages. An unknown id is an error, so that nothing is done to the others by mistake.
pub(super) async fn find_all(store: &Store, given: &[String]) -> Result<Vec<InboxEntry>, Failure> {
    let mut ids = BTreeSet::new();
    for given in given {
        if given != "-" {
            ids.insert(given.clone());
            continue;
        }
        for line in std::io::stdin().lock().lines() {
            let line = line?;
            let given = line.trim();
            if !given.is_empty() {
                ids.insert(id(given).map_err(|_| unknown(given))?);
            }
        }
    }
    let mut found = Vec::new();
    for id in ids {
        found.push(find(store, &id).await?);
    }
    Ok(found)
}

fn unknown(id: &str) -> Failure {
    Failure::new(format!("There is no message {id}. `porchlight inbox list` lists all messages."))
}

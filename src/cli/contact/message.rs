//! One contact message: how it is named, found and shown.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::cli::failure::Failure;
use crate::cli::terminal::{format_row, sanitize_line};
use crate::domain::contact::{ContactMessage, reference};
use crate::domain::text::SenderName;
use crate::store::{InboxEntry, Store};

/// Parses a full id, or the end of one.
pub(super) fn id(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if !(8..=36).contains(&text.len()) || !text.bytes().all(is_allowed) {
        return Err("it is not a reference such as 5f2c9a01".to_owned());
    }
    Ok(Uuid::parse_str(text).map_or_else(|_| text.to_lowercase(), |id| id.to_string()))
}

/// Returns a message and its delivery state as JSON.
pub(in crate::cli) fn message_json(entry: &InboxEntry) -> Value {
    let received = &entry.received;
    json!({
        "id": received.id,
        "reference": reference(received.id),
        "at": received.at.rfc3339(),
        "email": received.contact.email.as_typed(),
        "name": received.contact.name.as_ref().map(SenderName::as_str),
        "message": received.contact.text.as_str(),
        "state": entry.state.as_str(),
        "state_at": entry.state_at.rfc3339(),
        "tries": entry.tries,
        "trouble": entry.last_error,
    })
}

/// Returns the name and address of the sender.
pub(in crate::cli) fn contact_sender(message: &ContactMessage) -> String {
    let name = message.name.as_ref().map(SenderName::as_str).unwrap_or_default();
    sanitize_line(&format!("{name} <{}>", message.email.as_typed()))
}

pub(super) fn line(entry: &InboxEntry, width: Option<usize>) -> String {
    let received = &entry.received;
    let (email, text) = (received.contact.email.as_typed(), received.contact.text.as_str());
    let cells = [(reference(received.id), 8), (received.at.date(), 10), (entry.state.as_str().to_owned(), 7)];
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

pub(super) fn unknown(id: &str) -> Failure {
    Failure::new(format!("There is no message {id}. `porchlight inbox list` lists all messages."))
}

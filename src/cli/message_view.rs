//! Contact messages as JSON and text, for `inbox` and `people show`.

use serde_json::{Value, json};

use super::terminal::sanitize_line;
use crate::domain::contact::{ContactMessage, reference};
use crate::domain::text::SenderName;
use crate::store::InboxEntry;

/// Returns a message and its delivery state as JSON.
pub(super) fn message_json(entry: &InboxEntry) -> Value {
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
pub(super) fn contact_sender(message: &ContactMessage) -> String {
    let name = message.name.as_ref().map(SenderName::as_str).unwrap_or_default();
    sanitize_line(&format!("{name} <{}>", message.email.as_typed()))
}

//! Contact messages: sending one, and what the makers do with those in the inbox.

use serde_json::{Value, json};
use uuid::Uuid;

use super::failure::Failure;
use super::random::new_id;
use super::service::Service;
use crate::domain::contact::{ContactMessage, ReceivedMessage, reference};
use crate::domain::limits::MAX_SEARCHED_MESSAGES;
use crate::domain::paging::{Page, PageStart};
use crate::domain::text::{SenderName, quantity};
use crate::domain::time::Timestamp;
use crate::store::{DeliveryState, InboxEntry, InboxQuery, Store, StoreFailure};

/// Stores the message and its outbox entry in one transaction; [`OutboxSender`](super::outbox::OutboxSender) mails it.
///
/// The same message from the same sender within 24 hours is stored once, so a client
/// that got no response may repeat the request. `CLAIM_CONTENT_HASHES` in `store/contact/messages.rs` enforces it.
pub async fn send_contact(service: &Service, contact: ContactMessage) -> Result<(), Failure> {
    let at = service.clock.now();
    Ok(service.writer.record_message(ReceivedMessage { id: new_id(at), contact, at }).await?)
}

/// Returns a page of the inbox, and what to know about it, as a sentence.
pub async fn inbox_page(
    store: &Store,
    query: &InboxQuery,
    start: &PageStart<Uuid>,
    limit: usize,
) -> Result<(Page<InboxEntry>, Option<String>), StoreFailure> {
    let (mut start, mut found) = (start, store.inbox_page(query, start, limit + 1).await?);
    if start.leads_to_newest(found.len(), limit) {
        start = &PageStart::Newest;
        found = store.inbox_page(query, start, limit + 1).await?;
    }
    let page = Page::new(start, found, limit);
    let is_cut = query.search.is_some() && !page.has_older && store.has_unsearched_messages().await?;
    Ok((page, is_cut.then(|| format!("Only the newest {MAX_SEARCHED_MESSAGES} messages were looked at."))))
}

/// Returns a message and its delivery state as JSON. `docs/people.md` documents the members.
pub fn message_json(entry: &InboxEntry) -> Value {
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
        "answered_at": entry.answered_at.map(Timestamp::rfc3339),
    })
}

/// Says what became of the mail with a message, without a full stop.
pub fn delivery_in_words(entry: &InboxEntry, time: fn(Timestamp) -> String) -> String {
    let at = time(entry.state_at);
    match (entry.state, entry.tries) {
        (DeliveryState::Sent, _) => format!("mailed on {at}"),
        (DeliveryState::Failed, tries) => format!("failed on {at} after {}", quantity(tries, "attempt", "attempts")),
        (DeliveryState::Leased, _) => "being mailed now".to_owned(),
        (DeliveryState::Waiting, 0) => "waiting to be mailed".to_owned(),
        (DeliveryState::Waiting, tries) => {
            format!("waiting; {}, next attempt at {at}", quantity(tries, "failed attempt", "failed attempts"))
        }
    }
}

/// Why a message is not mailed again.
#[derive(Debug, thiserror::Error)]
pub enum RetryFailure {
    #[error("Message {reference} was already mailed on {date}.")]
    AlreadyMailed { reference: String, date: String },
    #[error("That message is being mailed now. Look again in a minute.")]
    BeingMailed,
    #[error("{}", .0.sentence("Nothing was done"))]
    Store(#[from] StoreFailure),
}

/// Makes a message due that is waiting or has failed, and all others of the same mail if that may have arrived. Returns how
/// many: one at least.
pub async fn retry_message(store: &Store, entry: &InboxEntry, now: Timestamp) -> Result<u64, RetryFailure> {
    let id = entry.received.id;
    if entry.state == DeliveryState::Sent {
        return Err(RetryFailure::AlreadyMailed { reference: reference(id), date: entry.state_at.minute() });
    }
    match store.retry_message(id, now).await? {
        0 => Err(RetryFailure::BeingMailed),
        retried => Ok(retried),
    }
}

/// Says that so many messages are retried.
pub fn retried_in_words(messages: u64) -> String {
    format!("{} will be mailed within half a minute.", quantity(messages, "message", "messages"))
}

/// What became of messages that were to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discarded {
    pub deleted: u64,
    /// Those that are being mailed.
    pub stayed: u64,
}

impl Discarded {
    /// Says it in one sentence or several.
    pub fn in_words(self) -> String {
        let deleted = quantity(self.deleted, "message was deleted.", "messages were deleted.");
        if self.stayed == 0 {
            return deleted;
        }
        let (one, many) = ("message is being mailed and stayed", "messages are being mailed and stayed");
        format!("{deleted} {}. Discard them again in a minute.", quantity(self.stayed, one, many))
    }
}

/// Deletes messages, mailed or not. One that is being mailed stays: `LOCK_UNLEASED` in `store/contact/message_leases.rs` enforces
/// it.
pub async fn discard_messages(store: &Store, messages: &[Uuid], now: Timestamp) -> Result<Discarded, StoreFailure> {
    let deleted = store.discard_messages(messages, now).await?;
    Ok(Discarded { deleted, stayed: messages.len() as u64 - deleted })
}

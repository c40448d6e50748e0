//! Sends a contact message to the makers.

use super::{Failure, Service, new_id};
use crate::domain::contact::{ContactMessage, ReceivedMessage};

/// Stores the message and its outbox entry in one transaction; [`Forwarder`](super::Forwarder) mails it.
///
/// The same message from the same sender within 24 hours ([`DUPLICATE_MESSAGE_WINDOW`]) is stored once, so a client
/// that got no response may repeat the request. `CLAIM_DIGESTS` in `store/messages.rs` enforces it.
pub async fn send_contact(service: &Service, contact: ContactMessage) -> Result<(), Failure> {
    let at = service.clock.now();
    Ok(service.writer.record_message(ReceivedMessage { id: new_id(at), contact, at }).await?)
}

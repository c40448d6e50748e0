//! Contact messages.

use super::failure::Failure;
use super::random::new_id;
use super::service::Service;
use crate::domain::contact::{ContactMessage, ReceivedMessage};

/// Stores the message and its outbox entry in one transaction; [`OutboxSender`](super::outbox::OutboxSender) mails it.
///
/// The same message from the same sender within 24 hours is stored once, so a client
/// that got no response may repeat the request. `CLAIM_CONTENT_HASHES` in `store/contact/messages.rs` enforces it.
pub async fn send_contact(service: &Service, contact: ContactMessage) -> Result<(), Failure> {
    let at = service.clock.now();
    Ok(service.writer.record_message(ReceivedMessage { id: new_id(at), contact, at }).await?)
}

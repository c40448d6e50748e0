//! Somebody writes to the makers.

use super::{Failure, Service, new_id};
use crate::domain::contact::{ContactMessage, ReceivedMessage};

/// Stores the message for the makers, on its way to their mailbox. The same words again within a day are stored once.
///
/// # Errors
/// `Unavailable` when it cannot be stored.
pub async fn send_contact(service: &Service, message: ContactMessage) -> Result<(), Failure> {
    let at = service.clock.now();
    Ok(service.writer.record_message(ReceivedMessage { id: new_id(at), message, at }).await?)
}

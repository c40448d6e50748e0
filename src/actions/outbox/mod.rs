//! Sends the mail that waits in the outbox.

mod lease;
mod send;

pub use lease::{ConfirmationTexts, OutboxSender};
pub use send::SendStep;

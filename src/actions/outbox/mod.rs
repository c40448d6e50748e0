//! Sends the mail that waits in the outbox.

mod next_mail;
mod send;

pub use next_mail::{ConfirmationTexts, OutboxSender};
pub use send::SendStep;

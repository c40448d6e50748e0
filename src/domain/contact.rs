//! A message to the makers.

use std::time::Duration;

use super::email::EmailAddress;
use super::text::{MessageText, SenderName};

/// Somebody writes to the makers and is answered at `email`.
#[derive(Clone, Debug)]
pub struct ContactMessage {
    pub name: Option<SenderName>,
    pub email: EmailAddress,
    pub message: MessageText,
}

/// For how long the same words from the same sender are one message, so that a caller who got no
/// answer may repeat the request.
pub const SAME_MESSAGE_WITHIN: Duration = Duration::from_hours(24);

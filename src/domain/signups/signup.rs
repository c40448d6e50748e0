//! Downloads and joins of the waitlist, which need only an email address.

use uuid::Uuid;

use super::consent::{OptInRequest, Via};
use crate::domain::mail::EmailAddress;
use crate::domain::text::Source;
use crate::domain::time::Timestamp;

/// A request for the app, with an optional opt-in to the monthly letter.
#[derive(Clone, Debug)]
pub struct DownloadRequest {
    pub email: EmailAddress,
    pub updates: bool,
    pub source: Option<Source>,
    pub via: Via,
}

/// A request to join the waitlist.
#[derive(Clone, Debug)]
pub struct WaitlistRequest {
    pub email: EmailAddress,
    pub source: Option<Source>,
    pub via: Via,
}

/// What was already stored for an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownBefore {
    pub downloaded: bool,
    pub joined: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignupKind {
    Download { opt_in: OptInRequest },
    Join,
}

/// One download or join.
#[derive(Clone, Debug)]
pub struct SignupRecord {
    pub id: Uuid,
    pub kind: SignupKind,
    pub email: EmailAddress,
    pub source: Option<Source>,
    pub via: Via,
    pub at: Timestamp,
}

impl SignupRecord {
    /// Whether a mail has to be sent that asks for the confirmation.
    pub const fn awaits_confirmation(&self) -> bool {
        matches!(self.kind, SignupKind::Download { opt_in: OptInRequest::Pending })
    }

    /// Whether there is no stored id, or it is that of this signup.
    pub fn is_first(&self, stored: Option<&String>) -> bool {
        stored.is_none_or(|id| Uuid::parse_str(id) == Ok(self.id))
    }
}

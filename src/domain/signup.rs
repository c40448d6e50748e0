//! Downloads and joins of the waitlist, which need only an email address, and the person they make known.

use super::confirmation::PendingOptIn;
use super::consent::{OptIn, Via};
use super::email::EmailAddress;
use super::suppression::SuppressionReason;
use super::text::Source;
use super::time::Timestamp;

/// A request for the app, with an optional opt-in to the monthly letter.
#[derive(Clone, Debug)]
pub struct DownloadOrder {
    pub email: EmailAddress,
    pub updates: bool,
    pub source: Option<Source>,
    pub via: Via,
}

/// A request to join the waitlist.
#[derive(Clone, Debug)]
pub struct WaitlistOrder {
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

/// A person as listed by `people list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub email: EmailAddress,
    pub first_seen: Timestamp,
    pub downloads: u32,
    pub waitlist: bool,
    pub opt_in: Option<OptIn>,
    /// An opt-in that does not count yet.
    pub pending: Option<PendingOptIn>,
    pub suppressed: Option<SuppressionReason>,
}

impl Person {
    /// Whether the person receives the monthly letter.
    pub const fn receives_letter(&self) -> bool {
        self.opt_in.is_some() && self.suppressed.is_none()
    }
}

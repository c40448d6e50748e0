//! A person who downloaded the app or joined the waitlist.

use super::confirmation::PendingOptIn;
use super::consent::OptIn;
use super::email::EmailAddress;
use super::suppression::SuppressionReason;
use super::time::Timestamp;

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

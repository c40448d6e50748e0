//! Requests that need only an email address: a download, and a place on the waitlist.

use super::consent::Via;
use super::email::EmailAddress;
use super::text::Source;

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

//! What people ask for with their address alone: the download, and a place on the older list.

use super::consent::Via;
use super::email::EmailAddress;
use super::text::Source;

/// Somebody wants the app, and perhaps the monthly email.
#[derive(Clone, Debug)]
pub struct DownloadOrder {
    pub email: EmailAddress,
    pub updates: bool,
    pub source: Option<Source>,
    pub via: Via,
}

/// Somebody wants to be on the older list.
#[derive(Clone, Debug)]
pub struct WaitlistOrder {
    pub email: EmailAddress,
    pub source: Option<Source>,
    pub via: Via,
}

/// What was known of an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownBefore {
    pub downloaded: bool,
    pub joined: bool,
}

//! Confirmed opt-ins: with the setting `confirm_updates` an opt-in is pending until the person confirms it by the link in a
//! mail.

use super::link_token::LinkToken;
use super::time::Timestamp;

/// The path of all confirmation pages, up to the token.
pub const CONFIRMATION_PATH: &str = "/confirm/";

/// The last path segment of a confirmation link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmationToken(LinkToken);

impl ConfirmationToken {
    pub const fn new(token: LinkToken) -> Self {
        Self(token)
    }

    /// Parses a token. Returns `None` if `text` does not have the form of one.
    pub fn parse(text: &str) -> Option<Self> {
        LinkToken::parse(text).map(Self)
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The path of the confirmation page.
    pub fn path(&self) -> String {
        format!("{CONFIRMATION_PATH}{}", self.as_str())
    }
}

/// How a download asks for the monthly letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptInRequest {
    /// Not at all. An earlier opt-in stays.
    None,
    /// The opt-in counts at once.
    Immediate,
    /// The opt-in counts once the person has confirmed it.
    Pending,
}

/// What the link in a mail leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// The opt-in waits for its confirmation.
    Pending,
    Confirmed,
    /// The owner of the address said that they had not asked for mail.
    Declined,
}

/// An opt-in that waits for its confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingOptIn {
    pub since: Timestamp,
    /// When the person was asked by mail. `None`: not yet, or not at all, for example because the address is suppressed.
    pub asked_at: Option<Timestamp>,
}

//! Confirmed opt-ins: with the setting `confirm_updates` an opt-in is pending until the person confirms it by the link in a
//! mail.

use super::link_token::LinkToken;
use super::time::Timestamp;

/// The path of all confirmation pages, up to the token.
pub const CONFIRMATION_PATH: &str = "/confirm/";

pub type ConfirmationToken = LinkToken;

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

//! The links in mails, with their random tokens: to unsubscribe from the letter, and to confirm an opt-in.

use std::fmt;

use crate::domain::parse::word_enum;
use crate::domain::sha256::{hex, is_hex};

/// The path of all unsubscribe pages, up to the token.
pub const UNSUBSCRIBE_PATH: &str = "/unsubscribe/";
/// The path of all confirmation pages, up to the token.
pub const CONFIRMATION_PATH: &str = "/confirm/";

/// A token of this many random bytes, in hexadecimal digits. It cannot be guessed, and reveals nothing about the person.
#[derive(Clone, PartialEq, Eq)]
pub struct RandomToken<const BYTES: usize>(String);

/// The last path segment of a link in a mail: 160 bits.
pub type LinkToken = RandomToken<20>;
pub type UnsubscribeToken = LinkToken;
pub type ConfirmationToken = LinkToken;

word_enum! {
    /// What the recipient of a letter asks for.
    pub enum UnsubscribeKind {
        /// No letters until the person opts in again.
        Unsubscribe = "unsubscribe",
        /// Another person entered the address: no letters ever, not even after an opt-in.
        NotMe = "not-me",
    }
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

impl<const BYTES: usize> RandomToken<BYTES> {
    pub const BYTES: usize = BYTES;

    pub fn from_random(bytes: [u8; BYTES]) -> Self {
        Self(hex(&bytes))
    }

    /// Parses a token. Returns `None` if `text` does not have the form of one.
    pub fn parse(text: &str) -> Option<Self> {
        is_hex(text, BYTES).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of the page below `path`, such as [`UNSUBSCRIBE_PATH`].
    pub fn path(&self, path: &str) -> String {
        format!("{path}{}", self.0)
    }
}

/// Does not reveal the token: anyone who has it can act for the person.
impl<const BYTES: usize> fmt::Debug for RandomToken<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_parsed_as_it_was_printed_and_nothing_else_is_accepted() {
        let token = LinkToken::from_random([0xa5; LinkToken::BYTES]);
        assert_eq!(LinkToken::parse(token.as_str()), Some(token.clone()));
        let text = token.as_str();
        for wrong in ["", &text[1..], &text.to_uppercase(), &format!("{text}0"), &text.replace('a', "g")] {
            assert_eq!(LinkToken::parse(wrong), None, "{wrong}");
        }
        assert!(!format!("{token:?}").contains("a5"));
    }
}

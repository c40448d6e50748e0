//! Leaving the monthly email: the link that leads out, and what is remembered of those who are never
//! to be mailed again.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::email::EmailAddress;
use super::sha256::hex;

/// What a link to the page for leaving ends in. It is made of chance alone, so it can neither be
/// guessed nor tells anything of the person.
#[derive(Clone, PartialEq, Eq)]
pub struct UnsubscribeToken(String);

impl UnsubscribeToken {
    /// How much chance a token is made of: 160 bits.
    pub const BYTES: usize = 20;

    #[must_use]
    pub fn from_random(bytes: [u8; Self::BYTES]) -> Self {
        Self(hex(&bytes))
    }

    /// A token as it was handed out; anything else is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 2 * Self::BYTES && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where the page for leaving is.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{UNSUBSCRIBE_PATH}{}", self.0)
    }
}

/// What comes before the token in its address.
pub const UNSUBSCRIBE_PATH: &str = "/unsubscribe/";

/// Whoever knows a token may use it, so none is shown by accident.
impl fmt::Debug for UnsubscribeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnsubscribeToken")
    }
}

/// How somebody leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsubscribeKind {
    /// Until they opt in again.
    Unsubscribe,
    /// Somebody else gave their address: for good, whoever opts in.
    NotMe,
}

impl UnsubscribeKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsubscribe => "unsubscribe",
            Self::NotMe => "not-me",
        }
    }
}

/// Why an address is never mailed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuppressionReason {
    /// Its owner says that somebody else gave it.
    NotMe,
    /// There is no such mailbox.
    NoMailbox,
    /// The makers want it so.
    Makers,
}

impl SuppressionReason {
    pub const ALL: [Self; 3] = [Self::NotMe, Self::NoMailbox, Self::Makers];

    /// Reads it back; anything else is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|why| why.as_str() == text)
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotMe => "not-me",
            Self::NoMailbox => "no-mailbox",
            Self::Makers => "makers",
        }
    }
}

/// The key by which addresses are remembered without being kept: one for each database.
#[derive(Clone)]
pub struct AddressHashKey([u8; 64]);

impl AddressHashKey {
    /// A key as the database made it; anything else is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.as_bytes().try_into().ok().map(Self)
    }

    /// Equal for two spellings of one address, and of no use to anybody without the key.
    #[must_use]
    pub fn hash(&self, email: &EmailAddress) -> String {
        hex(&Hmac::<Sha256>::new(&self.0.into()).chain_update(email.key()).finalize().into_bytes())
    }
}

impl fmt::Debug for AddressHashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressHashKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_made_and_nothing_else_is_one() {
        let token = UnsubscribeToken::from_random([0xa5; UnsubscribeToken::BYTES]);
        assert_eq!(UnsubscribeToken::parse(token.as_str()), Some(token.clone()));
        let text = token.as_str();
        for wrong in ["", &text[1..], &text.to_uppercase(), &format!("{text}0"), &text.replace('a', "g")] {
            assert_eq!(UnsubscribeToken::parse(wrong), None, "{wrong}");
        }
        assert!(!format!("{token:?}").contains("a5"));
    }

    #[test]
    fn hashes_tell_addresses_apart_and_depend_on_the_key() {
        let email = |typed| EmailAddress::parse(typed).unwrap();
        let (key, other) = (AddressHashKey([1; 64]), AddressHashKey([2; 64]));
        assert_eq!(key.hash(&email("Ada@Example.com")), key.hash(&email("ada@example.COM")));
        assert_ne!(key.hash(&email("ada@example.com")), key.hash(&email("bob@example.com")));
        assert_ne!(key.hash(&email("ada@example.com")), other.hash(&email("ada@example.com")));
        assert_eq!(key.hash(&email("ada@example.com")).len(), 64);
    }
}

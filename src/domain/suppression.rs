//! Suppressed addresses, which never get mail again. They are stored as keyed hashes.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::email::EmailAddress;
use super::sha256::hex;

/// Why an address is suppressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuppressionReason {
    /// The owner of the address says that another person entered it.
    NotMe,
    /// The mail server reported that the mailbox does not exist.
    NoMailbox,
    /// The makers suppressed it.
    Makers,
}

impl SuppressionReason {
    pub const ALL: [Self; 3] = [Self::NotMe, Self::NoMailbox, Self::Makers];

    /// Parses the stored form. Returns `None` if `text` is none of the reasons.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
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

/// The HMAC key for hashing suppressed addresses. Each database has its own.
#[derive(Clone)]
pub struct AddressHashKey([u8; 64]);

impl AddressHashKey {
    /// Parses a key as stored in the database. Returns `None` if its length is wrong.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.as_bytes().try_into().ok().map(Self)
    }

    /// Returns the keyed hash, which is equal for all spellings of an address. The address cannot be
    /// guessed from it without the key.
    #[must_use]
    pub fn hash(&self, email: &EmailAddress) -> String {
        hex(&Hmac::<Sha256>::new(&self.0.into()).chain_update(email.key()).finalize().into_bytes())
    }
}

/// Does not reveal the key.
impl fmt::Debug for AddressHashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressHashKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_differ_between_addresses_and_between_keys() {
        let email = |typed| EmailAddress::parse(typed).unwrap();
        let (key, other) = (AddressHashKey([1; 64]), AddressHashKey([2; 64]));
        assert_eq!(key.hash(&email("Ada@Example.com")), key.hash(&email("ada@example.COM")));
        assert_ne!(key.hash(&email("ada@example.com")), key.hash(&email("bob@example.com")));
        assert_ne!(key.hash(&email("ada@example.com")), other.hash(&email("ada@example.com")));
        assert_eq!(key.hash(&email("ada@example.com")).len(), 64);
    }
}

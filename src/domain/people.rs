//! People as the makers see them, how a page names one without the address, and suppressed mailboxes, which never get mail again
//! and are stored as keyed hashes.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::mail::{EmailAddress, InvalidEmail};
use super::parse::word_enum;
use super::sha256::hex;
use super::signups::{OptIn, PendingOptIn};
use super::time::Timestamp;

word_enum! {
    /// Why an address is suppressed.
    pub enum SuppressionReason {
        /// The owner of the address says that another person entered it.
        NotMe = "not-me",
        /// The mail server reported that the mailbox does not exist.
        NoMailbox = "no-mailbox",
        /// The makers suppressed it.
        Makers = "makers",
        /// Recorded by another version, under a name that this one does not know.
        Unknown = "unknown",
    }
}

impl SuppressionReason {
    /// Restores a reason from the database. A name that is not known does not make the row unreadable.
    pub fn from_stored(text: &str) -> Self {
        Self::parse(text).unwrap_or(Self::Unknown)
    }

    pub const fn in_words(self) -> &'static str {
        match self {
            Self::NotMe => "its owner says that somebody else entered it",
            Self::NoMailbox => "the mailbox does not exist",
            Self::Makers => "by a maker or an import",
            Self::Unknown => "for a reason that this version does not know",
        }
    }
}

/// The HMAC key for hashing suppressed addresses. Each database has its own.
#[derive(Clone)]
pub struct AddressHashKey([u8; 64]);

impl AddressHashKey {
    /// Parses a key as stored in the database. Returns `None` if its length is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        text.as_bytes().try_into().ok().map(Self)
    }

    /// Returns the position of an address among the recipients of a letter. Without the key it cannot be predicted.
    pub fn position(&self, letter: &super::sha256::Sha256, email: &EmailAddress) -> i64 {
        let hash =
            Hmac::<Sha256>::new(&self.0.into()).chain_update(letter.bytes()).chain_update(email.key()).finalize();
        hash.into_bytes().iter().take(4).fold(0, |position, byte| position << 8 | i64::from(*byte))
    }

    /// Returns the keyed hash of a normalized address, which may be that of a mailbox. The address cannot be guessed from it
    /// without the key.
    pub fn hash(&self, address: &str) -> String {
        hex(&Hmac::<Sha256>::new(&self.0.into()).chain_update(address).finalize().into_bytes())
    }

    /// Returns the hashes of which one is suppressed where an address must not be mailed: that of the address alone, and that of its
    /// mailbox. No address is like the text of the first.
    pub fn suppression_hashes(&self, email: &EmailAddress) -> [String; 2] {
        [self.hash(&format!("alone:{}", email.key())), self.hash(&email.mailbox())]
    }

    /// Returns the hash under which an address is suppressed. One that does not exist is suppressed alone, because not every mail
    /// server delivers variants, and anybody can invent one of a mailbox that exists.
    pub fn suppression_hash(&self, email: &EmailAddress, reason: SuppressionReason) -> String {
        let [alone, mailbox] = self.suppression_hashes(email);
        if reason == SuppressionReason::NoMailbox { alone } else { mailbox }
    }
}

/// Does not reveal the key.
impl fmt::Debug for AddressHashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressHashKey")
    }
}

word_enum! {
    /// What `people list` selects by. One person may be in several of these states.
    pub enum PersonState {
        /// Gets the monthly letter.
        OptedIn = "opted-in",
        /// Has an opt-in that waits for its confirmation.
        Pending = "pending",
        /// Never gets mail.
        Suppressed = "suppressed",
        /// Took an opt-in back, and has none now.
        Unsubscribed = "unsubscribed",
        Waitlist = "waitlist",
        Downloaded = "downloaded",
    }
}

/// Whom `people list` looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeopleSearch {
    /// The beginning of a normalized address.
    Beginning(String),
    /// A domain in lower case and ASCII.
    Domain(String),
}

impl PeopleSearch {
    /// Parses the beginning of an address, or `@` and a whole domain, in the spelling that people type.
    pub fn parse(text: &str) -> Result<Self, InvalidEmail> {
        let text = text.trim();
        if text.starts_with('@') {
            return EmailAddress::parse(&format!("a{text}")).map(|email| Self::Domain(email.domain().to_owned()));
        }
        if let Some(control) = text.chars().find(|c| c.is_control()) {
            return Err(InvalidEmail::Character(control));
        }
        let whole = EmailAddress::parse(text).map(|email| email.key().to_owned());
        whole
            .or_else(|_| match text {
                "" => Err(InvalidEmail::NoLocalPart),
                beginning => Ok(beginning.to_lowercase()),
            })
            .map(Self::Beginning)
    }
}

/// Which people are to be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeopleQuery {
    pub search: Option<PeopleSearch>,
    pub state: Option<PersonState>,
    /// First seen at this time or later.
    pub since: Option<Timestamp>,
}

/// Where a person is in the list, which is in the order of when people were first seen, and then of their addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonPlace {
    pub first_seen: Timestamp,
    /// The normalized address.
    pub address: String,
}

/// Names a person in an address of the desk, where an email address would be logged and remembered by browsers: when the person
/// was first seen, by which the row is found, and the beginning of a keyed hash of the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonKey {
    first_seen: Timestamp,
    hash: String,
}

impl PersonKey {
    /// As unguessable as half of a hash.
    const HASH_DIGITS: usize = 32;

    pub fn new(key: &AddressHashKey, email: &EmailAddress, first_seen: Timestamp) -> Self {
        // No address is like this text, so the hash is none of those that are stored. A person who was erased and comes back has
        // another one.
        let mut hash = key.hash(&format!("person:{}:{}", first_seen.unix_millis(), email.key()));
        hash.truncate(Self::HASH_DIGITS);
        Self { first_seen, hash }
    }

    /// Parses what `Display` writes, and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let (first_seen, hash) = text.rsplit_once('-')?;
        let key = Self { first_seen: Timestamp::from_unix_millis(first_seen.parse().ok()?), hash: hash.to_owned() };
        let is_hash =
            hash.len() == Self::HASH_DIGITS && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        Some(key).filter(|key| is_hash && key.to_string() == text)
    }

    pub const fn first_seen(&self) -> Timestamp {
        self.first_seen
    }
}

impl fmt::Display for PersonKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first_seen.unix_millis(), self.hash)
    }
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
    /// Whether the person ever took an opt-in back.
    pub withdrew: bool,
}

impl Person {
    pub const fn is(&self, state: PersonState) -> bool {
        match state {
            PersonState::OptedIn => self.receives_letter(),
            PersonState::Pending => self.pending.is_some(),
            PersonState::Suppressed => self.suppressed.is_some(),
            PersonState::Unsubscribed => self.withdrew && self.opt_in.is_none(),
            PersonState::Waitlist => self.waitlist,
            PersonState::Downloaded => self.downloads > 0,
        }
    }

    pub fn place(&self) -> PersonPlace {
        PersonPlace { first_seen: self.first_seen, address: self.email.key().to_owned() }
    }

    /// Whether the person receives the monthly letter.
    pub const fn receives_letter(&self) -> bool {
        self.opt_in.is_some() && self.suppressed.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_the_beginning_of_an_address_or_a_domain() {
        let beginning = |text: &str| Ok(PeopleSearch::Beginning(text.to_owned()));
        for (text, found) in [
            ("Ada", beginning("ada")),
            (" ada@exa", beginning("ada@exa")),
            ("Ada@München.example", beginning("ada@xn--mnchen-3ya.example")),
            ("@Example.COM", Ok(PeopleSearch::Domain("example.com".to_owned()))),
            ("@münchen.example", Ok(PeopleSearch::Domain("xn--mnchen-3ya.example".to_owned()))),
            ("", Err(InvalidEmail::NoLocalPart)),
            ("@example", Err(InvalidEmail::Domain)),
            ("@", Err(InvalidEmail::NoDomain)),
            ("a\0b", Err(InvalidEmail::Character('\0'))),
        ] {
            assert_eq!(PeopleSearch::parse(text), found, "{text}");
        }
    }

    #[test]
    fn the_key_of_a_person_is_read_as_it_is_written_and_tells_no_address() {
        let (secret, ada) = (AddressHashKey([1; 64]), EmailAddress::parse("Ada@example.com").unwrap());
        for millis in [1_794_744_000_000, 0, -5] {
            let key = PersonKey::new(&secret, &ada, Timestamp::from_unix_millis(millis));
            let text = key.to_string();
            assert_eq!(PersonKey::parse(&text), Some(key));
            let hash = text.strip_prefix(&format!("{millis}-")).unwrap();
            assert!(hash.len() == 32 && !secret.hash("ada@example.com").starts_with(hash), "{text}");
            for wrong in [
                text.to_uppercase(),
                format!("+{text}"),
                format!("0{text}"),
                text[1..].replace('-', ""),
                format!("{text}0"),
            ] {
                assert_eq!(PersonKey::parse(&wrong).filter(|_| wrong != text), None, "{wrong}");
            }
        }
        for wrong in ["", "-", "1-", "-0123456789abcdef0123456789abcdef", "x-0123456789abcdef0123456789abcdef"] {
            assert_eq!(PersonKey::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn hashes_differ_between_addresses_and_between_keys() {
        let (key, other) = (AddressHashKey([1; 64]), AddressHashKey([2; 64]));
        assert_ne!(key.hash("ada@example.com"), key.hash("bob@example.com"));
        assert_ne!(key.hash("ada@example.com"), other.hash("ada@example.com"));
        assert_eq!(key.hash("ada@example.com").len(), 64);
    }
}

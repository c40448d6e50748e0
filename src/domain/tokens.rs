//! Tokens by which programs of the makers do something over HTTP, such as publish a release.

use std::fmt;

use super::letters::RandomToken;
use super::limits::MAX_CREDENTIAL_NAME_BYTES;
use super::parse::{Invalid, from_stored, text_types, word_enum};
use super::sha256::Sha256;
use super::time::{Day, Timestamp};

/// By this, people and programs that look for leaked secrets recognize a token.
const PREFIX: &str = "porchlight_";

/// A token itself: 256 random bits. It is shown once and never stored.
#[derive(Clone, Debug)]
pub struct TokenSecret(RandomToken<32>);

impl TokenSecret {
    pub const fn new(random: RandomToken<32>) -> Self {
        Self(random)
    }

    /// Returns `None` if `text` does not have the form of a token.
    pub fn parse(text: &str) -> Option<Self> {
        text.strip_prefix(PREFIX).and_then(RandomToken::parse).map(Self)
    }

    pub fn expose(&self) -> String {
        format!("{PREFIX}{}", self.0.as_str())
    }

    /// What is stored. One SHA-256 without salt is enough: a slow hash protects passwords that can be guessed, and nobody
    /// guesses 256 random bits.
    pub fn hash(&self) -> Sha256 {
        Sha256::of(self.0.as_str().as_bytes())
    }
}

/// What the makers call a token or a session of the desk, such as `github-actions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialName(String);

text_types!(CredentialName);
from_stored!(CredentialName);

impl CredentialName {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if (1..=MAX_CREDENTIAL_NAME_BYTES).contains(&text.len()) && text.bytes().all(is_valid) {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid::new(format!("it is not 1 to {MAX_CREDENTIAL_NAME_BYTES} letters, digits, `-`, `_` and `.`")))
    }
}

word_enum! {
    /// What a token allows.
    pub enum TokenRight {
        /// Publish, describe and withdraw releases.
        Publish = "publish",
    }
}

impl fmt::Display for TokenRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is known of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub name: CredentialName,
    pub may: TokenRight,
    pub created: Timestamp,
    /// The last day on which it works. `None`: until it is revoked.
    pub until: Option<Day>,
    /// Less exact than an hour.
    pub last_used: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognized_by_its_form_and_not_shown_by_debug() {
        let secret = TokenSecret::new(RandomToken::from_random([0xa5; 32]));
        let text = secret.expose();
        assert_eq!(text, format!("porchlight_{}", "a5".repeat(32)));
        assert_eq!(TokenSecret::parse(&text).unwrap().hash(), secret.hash());
        assert!(!format!("{secret:?}").contains("a5"));
        for wrong in ["", "porchlight_", &text[1..], &text[..text.len() - 1], &text.to_uppercase()] {
            assert!(TokenSecret::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn names_need_no_quotes() {
        for good in ["github-actions", "ci.2", "a", &"x".repeat(MAX_CREDENTIAL_NAME_BYTES)] {
            assert!(CredentialName::parse(good).is_ok(), "{good}");
        }
        for wrong in ["", "two words", "a/b", "é", &"x".repeat(MAX_CREDENTIAL_NAME_BYTES + 1)] {
            assert!(CredentialName::parse(wrong).is_err(), "{wrong}");
        }
    }
}

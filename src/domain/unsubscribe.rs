//! Unsubscribing from the monthly letter: the token in the link, and the two kinds of request.

use std::fmt;

use super::sha256::hex;

/// The last path segment of an unsubscribe link. It is random, so it cannot be guessed and reveals
/// nothing about the person.
#[derive(Clone, PartialEq, Eq)]
pub struct UnsubscribeToken(String);

impl UnsubscribeToken {
    /// Length of the random part: 160 bits.
    pub const BYTES: usize = 20;

    #[must_use]
    pub fn from_random(bytes: [u8; Self::BYTES]) -> Self {
        Self(hex(&bytes))
    }

    /// Parses a token. Returns `None` if `text` does not have the form of one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 2 * Self::BYTES && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of the unsubscribe page.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{UNSUBSCRIBE_PATH}{}", self.0)
    }
}

/// The path of all unsubscribe pages, up to the token.
pub const UNSUBSCRIBE_PATH: &str = "/unsubscribe/";

/// Does not reveal the token: anyone who has it can unsubscribe the person.
impl fmt::Debug for UnsubscribeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnsubscribeToken")
    }
}

/// What the recipient of a letter asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsubscribeKind {
    /// No letters until the person opts in again.
    Unsubscribe,
    /// Another person entered the address: no letters ever, not even after an opt-in.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_parsed_as_it_was_printed_and_nothing_else_is_accepted() {
        let token = UnsubscribeToken::from_random([0xa5; UnsubscribeToken::BYTES]);
        assert_eq!(UnsubscribeToken::parse(token.as_str()), Some(token.clone()));
        let text = token.as_str();
        for wrong in ["", &text[1..], &text.to_uppercase(), &format!("{text}0"), &text.replace('a', "g")] {
            assert_eq!(UnsubscribeToken::parse(wrong), None, "{wrong}");
        }
        assert!(!format!("{token:?}").contains("a5"));
    }
}

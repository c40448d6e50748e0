//! Which recipients of which letter are listed.

use crate::domain::parse::{Invalid, word_enum};

word_enum! {
    /// A state, or that the copy came back.
    pub enum RecipientFilter {
        Sent = "sent",
        Waiting = "waiting",
        Refused = "refused",
        Skipped = "skipped",
        Uncertain = "uncertain",
        Bounced = "bounced",
    }
}

/// The id of a letter, or its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetterReference(String);

impl LetterReference {
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let is_hex = (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| Self(text.to_ascii_lowercase())).ok_or_else(|| {
            Invalid::new("give the id of the letter, or its beginning: `porchlight letter list` shows it")
        })
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_the_beginning_of_a_hash() {
        assert_eq!(LetterReference::parse("9F86d081").unwrap().as_str(), "9f86d081");
        for wrong in ["", "november.md", "%", &"a".repeat(65)] {
            assert!(LetterReference::parse(wrong).is_err(), "{wrong}");
        }
    }
}

//! The monthly letter: its Markdown source, its delivery counts, and the links in mails, with which people unsubscribe from it and
//! confirm their opt-in.

use std::fmt;

use serde::Serialize;

use crate::domain::limits;
use crate::domain::parse::{Invalid, word_enum};
use crate::domain::sha256::{Sha256, hex, is_hex};
use crate::domain::text::{FrontMatter, clean_text};

/// A letter that can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The hash of the text. Sending the same file again resumes the letter.
    pub id: Sha256,
    pub subject: String,
    /// Markdown.
    pub body: String,
}

impl Letter {
    /// Parses a Markdown file. The subject is `subject` of the front matter, else the first heading.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if text.len() > limits::MAX_LETTER_BYTES {
            let max = limits::MAX_LETTER_BYTES / 1024;
            return Err(Invalid::new(format!("it is larger than {max} KiB, and mail clients truncate such messages")));
        }
        let text = clean_text(text);
        let (front_matter, body) = FrontMatter::split(&text)?;
        if body.trim().is_empty() {
            return Err(Invalid::new("it is empty"));
        }
        if body.contains("![") {
            return Err(Invalid::new(
                "it contains an image, which mail clients load when the letter is opened, so the host of the image learns \
                 who reads it; link to the image instead",
            ));
        }
        let named = front_matter.as_ref().and_then(|front_matter| front_matter.get("subject"));
        let heading = || body.lines().find_map(|line| line.strip_prefix("# "));
        let subject = named.or_else(heading).map(plain).filter(|subject| !subject.is_empty());
        let subject = subject.ok_or_else(|| {
            Invalid::new("it has no subject: give it a first heading, or front matter with a line `subject: …`")
        })?;
        if subject.chars().count() > limits::MAX_LETTER_SUBJECT_CHARS {
            let max = limits::MAX_LETTER_SUBJECT_CHARS;
            return Err(Invalid::new(format!("its subject is longer than {max} characters")));
        }
        Ok(Self { id: Sha256::of(text.trim().as_bytes()), subject, body: body.trim().to_owned() + "\n" })
    }
}

/// Strips whitespace, quotes and Markdown emphasis from both ends.
fn plain(line: &str) -> String {
    line.trim().trim_matches(['"', '\'', '*', '`']).trim().to_owned()
}

word_enum! {
    pub enum RecipientState {
        /// Not sent yet, or deferred by the mail server.
        Waiting = "waiting",
        /// Handed to the mail server, whose reply was not recorded. Never sent again automatically.
        Uncertain = "uncertain",
        Sent = "sent",
        /// Permanently rejected by the mail server.
        Refused = "refused",
        /// Opted out or suppressed in the meantime, or already had a letter this month.
        Skipped = "skipped",
    }
}

/// How many recipients a letter has, and how many of them are in which [`RecipientState`]: the counts from `sent` to `skipped` add
/// up to `recipients`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LetterCounts {
    pub recipients: u64,
    pub sent: u64,
    pub waiting: u64,
    pub uncertain: u64,
    pub refused: u64,
    pub skipped: u64,
    /// Sent or uncertain, and returned as undeliverable. Not a state.
    pub bounced: u64,
}

/// The path of all unsubscribe pages, up to the token.
pub const UNSUBSCRIBE_PATH: &str = "/unsubscribe/";
/// The path of all confirmation pages, up to the token.
pub const CONFIRMATION_PATH: &str = "/confirm/";

/// A token of this many random bytes, in hexadecimal digits. It cannot be guessed, and reveals nothing about the person.
#[derive(Clone, PartialEq, Eq)]
pub struct RandomToken<const BYTES: usize>(String);

/// The last path segment of a link in a mail: 160 bits.
pub type UnsubscribeToken = RandomToken<20>;
pub type ConfirmationToken = RandomToken<20>;

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
    fn the_subject_comes_from_the_front_matter_or_else_from_the_first_heading() {
        let named = Letter::parse("---\nsubject: \"November: bots\"\n---\n# Hello\n\nText\n").unwrap();
        assert_eq!((named.subject.as_str(), named.body.as_str()), ("November: bots", "# Hello\n\nText\n"));
        let headed = Letter::parse("Intro\n\n# **What is new**\n\nText\n").unwrap();
        assert_eq!(headed.subject, "What is new");
    }

    #[test]
    fn a_letter_that_cannot_be_sent_is_refused() {
        for (text, error) in [
            ("", "it is empty"),
            ("---\nsubject: A\n---\n \n", "it is empty"),
            ("# A\n\n![b](https://elsewhere.example/pixel.gif)", "it contains an image"),
            ("---\nsubject: A\n", "its front matter does not end"),
            ("Only text\n\n## A second heading\n", "it has no subject"),
            ("---\nsubject:\n---\nText", "it has no subject"),
            (&format!("# {}\n", "a".repeat(151)), "its subject is longer than 150"),
            (&"a".repeat(65 * 1024), "it is larger than 64 KiB"),
        ] {
            assert!(Letter::parse(text).unwrap_err().to_string().starts_with(error), "{text:.40}");
        }
    }

    #[test]
    fn a_subject_is_one_line_without_control_characters() {
        let letter = Letter::parse("# A\u{0}\u{1b}[2J b\r\n\nText").unwrap();
        assert_eq!(letter.subject, "A[2J b");
    }

    #[test]
    fn the_same_text_is_the_same_letter() {
        let id = |text| Letter::parse(text).unwrap().id;
        assert_eq!(id("# A\n\nText\n"), id("\u{feff}# A\r\n\r\nText\r\n\r\n"));
        assert_ne!(id("# A\n\nText\n"), id("# A\n\nText!\n"));
    }

    #[test]
    fn a_token_is_parsed_as_it_was_printed_and_nothing_else_is_accepted() {
        let token = RandomToken::<20>::from_random([0xa5; 20]);
        assert_eq!(RandomToken::<20>::parse(token.as_str()), Some(token.clone()));
        let text = token.as_str();
        for wrong in ["", &text[1..], &text.to_uppercase(), &format!("{text}0"), &text.replace('a', "g")] {
            assert_eq!(RandomToken::<20>::parse(wrong), None, "{wrong}");
        }
        assert!(!format!("{token:?}").contains("a5"));
    }
}

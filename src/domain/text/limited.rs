//! Texts of limited length: the source of a signup, the sender's name, the message.
//!
//! Limits apply to the text as sent. U+0000, which PostgreSQL cannot store, is replaced by U+FFFD.

use super::display::is_noncharacter;
use crate::domain::limits;
use crate::domain::parse::{from_stored, text_types};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {length} characters, and at most {max} are allowed")]
pub struct TooLong {
    pub length: usize,
    pub max: usize,
}

fn bounded(text: &str, max: usize) -> Result<String, TooLong> {
    let length = text.chars().count();
    if length > max {
        return Err(TooLong { length, max });
    }
    Ok(text.replace('\0', "\u{fffd}"))
}

from_stored!(Source, SenderName, MessageText);
text_types!(Source, SenderName, MessageText);

macro_rules! not_blank {
    () => {
        r"[^\t-\r\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
    };
}

/// Removes the byte order mark, carriage returns and all characters that feeds and emails cannot contain
/// from the text of a file.
pub fn clean_text(text: &str) -> String {
    let is_allowed = |c: &char| ['\n', '\t'].contains(c) || !(c.is_control() || is_noncharacter(*c));
    text.trim_start_matches('\u{feff}').chars().filter(is_allowed).collect()
}

/// Where a signup came from, such as the caller's app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source(String);

impl Source {
    pub fn parse(text: &str) -> Result<Self, TooLong> {
        bounded(text, limits::MAX_SOURCE_CHARS).map(Self)
    }
}

/// The name of the sender of a contact message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderName(String);

impl SenderName {
    pub fn parse(text: &str) -> Result<Self, TooLong> {
        bounded(text, limits::MAX_NAME_CHARS).map(Self)
    }
}

/// Two characters that `is_blank` is not true of, as a regular expression. The characters are spelled out, because engines
/// differ in what they take for whitespace.
pub const TWO_VISIBLE_CHARACTERS: &str = concat!(not_blank!(), r"[\s\S]*", not_blank!());

/// A contact message, stored with its surrounding whitespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageText(String);

/// Full sentences, because clients get them unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMessage {
    #[error("The message has fewer than {min} characters.", min = limits::MIN_MESSAGE_CHARS)]
    Empty,
    #[error("The message has {0} characters, and at most {max} are allowed.", max = limits::MAX_MESSAGE_CHARS)]
    TooLong(usize),
}

impl MessageText {
    pub fn parse(text: &str) -> Result<Self, InvalidMessage> {
        if text.trim_matches(is_blank).chars().count() < limits::MIN_MESSAGE_CHARS {
            return Err(InvalidMessage::Empty);
        }
        bounded(text, limits::MAX_MESSAGE_CHARS).map(Self).map_err(|too_long| InvalidMessage::TooLong(too_long.length))
    }
}

/// Whether `c` is whitespace or an ASCII separator, which some regex engines treat as whitespace.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_of_a_message_accepts_what_is_accepted() {
        let pattern = fancy_regex::Regex::new(TWO_VISIBLE_CHARACTERS).unwrap();
        for c in ('\0'..='\u{ffff}').filter(|c| c.is_whitespace() || c.is_control() || *c >= '\u{2000}') {
            for text in [format!("a{c}"), format!("{c}a"), format!("{c}{c}"), format!("a{c}b")] {
                assert_eq!(pattern.is_match(&text).unwrap(), MessageText::parse(&text).is_ok(), "{text:?}");
            }
        }
    }

    #[test]
    fn lengths_count_code_points() {
        assert!(Source::parse(&"🎭".repeat(32)).is_ok());
        assert_eq!(Source::parse(&"🎭".repeat(33)), Err(TooLong { length: 33, max: 32 }));
        assert!(SenderName::parse(&"ß".repeat(100)).is_ok());
        assert!(SenderName::parse(&"ß".repeat(101)).is_err());
        assert!(MessageText::parse(&"é".repeat(4000)).is_ok());
        assert_eq!(MessageText::parse(&"é".repeat(4001)), Err(InvalidMessage::TooLong(4001)));
    }

    #[test]
    fn a_message_needs_two_characters_besides_white_space() {
        for blank in ["", " ", "\n\t ", "x", "  x  ", "\u{a0}\u{2003}\u{2028}", "\u{1c}\u{1d}"] {
            assert_eq!(MessageText::parse(blank), Err(InvalidMessage::Empty), "{blank:?}");
        }
        assert_eq!(MessageText::parse(" hi ").unwrap().as_str(), " hi ");
    }

    #[test]
    fn nul_is_stored_as_the_replacement_character() {
        assert_eq!(MessageText::parse("a\0b").unwrap().as_str(), "a\u{fffd}b");
    }
}

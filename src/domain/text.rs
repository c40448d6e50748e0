//! Texts that people and callers hand in: where they came from, their name, their message.
//!
//! Lengths are judged on what was sent; U+0000, which PostgreSQL cannot hold, is kept as U+FFFD.

use super::limits;

/// A text within its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bounded(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {length} characters, and at most {max} are allowed")]
pub struct TooLong {
    pub length: usize,
    pub max: usize,
}

impl Bounded {
    fn parse(text: &str, max: usize) -> Result<Self, TooLong> {
        let length = text.chars().count();
        if length > max {
            return Err(TooLong { length, max });
        }
        Ok(Self(text.replace('\0', "\u{fffd}")))
    }
}

/// What a maker wrote in a file, without a mark of its encoding, copier returns and all that no
/// feed or mail could carry.
#[must_use]
pub fn written_text(text: &str) -> String {
    let carried = |c: &char| ['\n', '\t'].contains(c) || !(c.is_control() || ['\u{fffe}', '\u{ffff}'].contains(c));
    text.trim_start_matches('\u{feff}').chars().filter(carried).collect()
}

/// Where a request came from, such as the caller's app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source(Bounded);

impl Source {
    /// # Errors
    /// When it is over its limit.
    pub fn parse(text: &str) -> Result<Self, TooLong> {
        Bounded::parse(text, limits::MAX_SOURCE_CHARS).map(Self)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.0
    }
}

/// The name of somebody who writes to the makers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderName(Bounded);

impl SenderName {
    /// # Errors
    /// When it is over its limit.
    pub fn parse(text: &str) -> Result<Self, TooLong> {
        Bounded::parse(text, limits::MAX_NAME_CHARS).map(Self)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.0
    }
}

/// A message to the makers, kept whole, surrounding space included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageText(Bounded);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMessage {
    #[error("The message is empty.")]
    Empty,
    #[error("The message has {0} characters, and at most {max} are allowed.", max = limits::MAX_MESSAGE_CHARS)]
    TooLong(usize),
}

impl MessageText {
    /// # Errors
    /// When nothing is left of it without the surrounding space, or it is over its limit.
    pub fn parse(text: &str) -> Result<Self, InvalidMessage> {
        if text.trim_matches(is_blank).chars().count() < limits::MIN_MESSAGE_CHARS {
            return Err(InvalidMessage::Empty);
        }
        Bounded::parse(text, limits::MAX_MESSAGE_CHARS)
            .map(Self)
            .map_err(|too_long| InvalidMessage::TooLong(too_long.length))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.0
    }
}

/// White space, and the four separators of ASCII that some readers of the schema count as such.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_message_needs_two_characters_besides_space() {
        for blank in ["", " ", "\n\t ", "x", "  x  ", "\u{a0}\u{2003}\u{2028}", "\u{1c}\u{1d}"] {
            assert_eq!(MessageText::parse(blank), Err(InvalidMessage::Empty), "{blank:?}");
        }
        assert_eq!(MessageText::parse(" hi ").unwrap().as_str(), " hi ");
    }

    #[test]
    fn nul_is_kept_as_the_replacement_character() {
        assert_eq!(MessageText::parse("a\0b").unwrap().as_str(), "a\u{fffd}b");
    }
}

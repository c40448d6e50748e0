//! Contact messages, their references and subjects, and what is found in them.

use unicode_normalization::UnicodeNormalization as _;
use uuid::Uuid;

use crate::domain::limits::{MAX_SUBJECT_NAME_CHARS, MAX_SUBJECT_WORDS_CHARS};
use crate::domain::mail::EmailAddress;
use crate::domain::text::{MessageText, SenderName, sanitize_label, sanitize_line};
use crate::domain::time::Timestamp;

/// A message to the makers. Replies go to `email`.
#[derive(Clone, Debug)]
pub struct ContactMessage {
    pub name: Option<SenderName>,
    pub email: EmailAddress,
    pub text: MessageText,
}

impl ContactMessage {
    /// The name of the sender, unless it is blank.
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(SenderName::as_str).filter(|name| !name.trim().is_empty())
    }

    /// The name and the address of the sender, in one line.
    pub fn sender(&self) -> String {
        sanitize_line(&format!("{} <{}>", self.name().unwrap_or_default(), self.email.as_typed()))
    }
}

/// A message with its id and the time it was received.
#[derive(Clone, Debug)]
pub struct ReceivedMessage {
    pub id: Uuid,
    pub contact: ContactMessage,
    pub at: Timestamp,
}

impl ReceivedMessage {
    /// The subject of the mail to the makers: a fixed word, then the name and the first words of the message. What visitors wrote
    /// comes last, without invisible characters, and without what a mail client would decode as an encoded word.
    pub fn subject(&self) -> String {
        let name = self.contact.name().map(|name| format!("{}: ", first_words(name, MAX_SUBJECT_NAME_CHARS)));
        let words = first_words(self.contact.text.as_str(), MAX_SUBJECT_WORDS_CHARS);
        format!("Contact: {}{words}", name.unwrap_or_default())
    }
}

/// Returns the reference, a short id to show to people: the last 8 hexadecimal digits, because the first
/// ones are a timestamp.
pub fn reference(id: Uuid) -> String {
    let id = id.simple().to_string();
    id[id.len() - 8..].to_owned()
}

/// A text to look for in messages, in the name and the address of the sender, too. Case does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSearch(String);

impl MessageSearch {
    /// Returns `None` if there is nothing to look for.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self(folded(text.trim()))).filter(|search| !search.0.is_empty())
    }

    pub fn finds(&self, message: &ContactMessage) -> bool {
        let texts =
            [message.name.as_ref().map_or("", SenderName::as_str), message.email.as_typed(), message.text.as_str()];
        texts.into_iter().any(|text| folded(text).contains(&self.0))
    }
}

fn folded(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.nfc().collect::<String>().to_lowercase() }
}

/// Cuts at the end of a word, unless that leaves less than half.
pub(super) fn first_words(text: &str, max_chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = sanitize_label(&line).replace("=?", "= ?");
    match line.char_indices().nth(max_chars) {
        None => line,
        Some((end, _)) => format!("{}…", whole_words(&line[..end])),
    }
}

/// Leaves out a word at the end that may not be whole, unless that leaves less than half.
pub(super) fn whole_words(start: &str) -> &str {
    let end = start.rfind(' ').filter(|end| *end >= start.len() / 2);
    &start[..end.unwrap_or(start.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_differs_between_messages_of_the_same_millisecond() {
        let id = Uuid::parse_str("0199a4b0-0000-7000-8000-0123456789ab").unwrap();
        assert_eq!(reference(id), "456789ab");
    }

    #[test]
    fn a_subject_has_the_first_words() {
        assert_eq!(first_words(" Hello,\r\n\n  does it\trun? ", 60), "Hello, does it run?");
        assert_eq!(first_words("does it run on Sonoma", 12), "does it run…");
        assert_eq!(first_words(&"x".repeat(50), 12), format!("{}…", "x".repeat(12)));
        assert_eq!(first_words("🎭🎭🎭🎭🎭", 3), "🎭🎭🎭…");
        assert_eq!(first_words("=?utf-8?q?Bcc?= a\u{202e}b\u{1b}", 60), "= ?utf-8?q?Bcc?= a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn a_search_ignores_case_in_every_script_and_how_accents_are_written() {
        let message = ContactMessage {
            name: Some(SenderName::parse("Ada Lovelace").unwrap()),
            email: EmailAddress::parse("Ada@münchen.example").unwrap(),
            text: MessageText::parse("Grüße, ÇA VA?\nДобрый день").unwrap(),
        };
        for found in ["lovelace", "ADA@MÜN", "GRÜSSE,", "grüße", "gru\u{308}ße", "ça va", "ДОБРЫЙ", " va?\n"]
        {
            let expected = found != "GRÜSSE,";
            assert_eq!(MessageSearch::parse(found).unwrap().finds(&message), expected, "{found}");
        }
        assert_eq!(MessageSearch::parse(" \n"), None);
    }
}

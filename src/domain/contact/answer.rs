//! The link that answers a message in the makers' own mail program (RFC 6068).

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::message::{ReceivedMessage, first_words, whole_words};
use crate::domain::limits::{MAX_ANSWER_LINK_BYTES, MAX_SUBJECT_NAME_CHARS, MAX_SUBJECT_WORDS_CHARS};
use crate::domain::text::{is_invisible, lines};
use crate::domain::time::Day;

/// What is percent-encoded: all but the unreserved characters (RFC 3986, section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Stands for the rest of a message.
const CUT: &str = "> […]";

impl ReceivedMessage {
    /// Returns a `mailto:` link to the sender, with the first words of the message as the subject, and with the message as a quote
    /// below an empty line. The quote is cut if the link would have more than [`MAX_ANSWER_LINK_BYTES`].
    pub fn answer_link(&self) -> String {
        let to: String = self.contact.email.in_ascii().chars().filter(|c| !is_invisible(*c)).collect();
        let (local, domain) = to.rsplit_once('@').unwrap_or((&to, ""));
        let name = self.contact.name().map(|name| first_words(name, MAX_SUBJECT_NAME_CHARS));
        let wrote = format!("\r\n\r\nOn {}, {} wrote:", Day::of(self.at).long(), name.as_deref().unwrap_or(&to));
        let subject = format!("Re: {}", first_words(self.contact.text.as_str(), MAX_SUBJECT_WORDS_CHARS));
        let (local, domain, subject, wrote) = (encode(local), encode(domain), encode(&subject), encode(&wrote));
        let mut link = format!("mailto:{local}@{domain}?subject={subject}&body={wrote}");
        let most = MAX_ANSWER_LINK_BYTES.saturating_sub(encode(&format!("\r\n{CUT}")).len());
        for line in lines(self.contact.text.as_str().trim()) {
            let room = most.checked_sub(link.len() + encode("\r\n> ").len());
            let start = room.map_or("", |room| fitting(&line, room));
            let is_whole = room.is_some() && start == line;
            if is_whole || !start.is_empty() {
                link += &encode(&format!("\r\n> {start}"));
            }
            if !is_whole {
                return link + &encode(&format!("\r\n{CUT}"));
            }
        }
        link
    }
}

fn encode(text: &str) -> Cow<'_, str> {
    utf8_percent_encode(text, ENCODED).into()
}

/// Returns the beginning of a line that has at most so many bytes when it is encoded.
fn fitting(line: &str, max_bytes: usize) -> &str {
    let mut bytes = 0;
    let too_long = line.char_indices().find(|(_, character)| {
        bytes += encode(character.encode_utf8(&mut [0; 4])).len();
        bytes > max_bytes
    });
    too_long.map_or(line, |(end, _)| whole_words(&line[..end]))
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use uuid::Uuid;

    use super::*;
    use crate::domain::contact::ContactMessage;
    use crate::domain::mail::EmailAddress;
    use crate::domain::text::{MessageText, SenderName};
    use crate::domain::time::Timestamp;

    fn link(name: Option<&str>, email: &str, text: &str) -> String {
        let contact = ContactMessage {
            name: name.map(SenderName::from_stored),
            email: EmailAddress::parse(email).unwrap_or_else(|_| EmailAddress::from_stored(email, email)),
            text: MessageText::from_stored(text),
        };
        let at = Timestamp::parse("2026-11-15T12:00:00Z").unwrap();
        ReceivedMessage { id: Uuid::nil(), contact, at }.answer_link()
    }

    /// The recipient, the subject and the body, as a mail program reads them.
    fn read(link: &str) -> [String; 3] {
        assert!(link.bytes().all(|byte| byte.is_ascii_graphic()), "{link}");
        let (to, rest) = link.strip_prefix("mailto:").unwrap().split_once("?subject=").unwrap();
        let (subject, body) = rest.split_once("&body=").unwrap();
        assert!(!to.contains(['?', '&', '#']) && !rest.replacen("&body=", "", 1).contains(['&', '#']), "{link}");
        [to, subject, body].map(|part| percent_decode_str(part).decode_utf8().unwrap().into_owned())
    }

    #[test]
    fn an_answer_quotes_the_message_below_an_empty_line() {
        let [to, subject, body] = read(&link(Some("Ada"), "Ada@example.com", "Hello,\ndoes it run\r\non Sonoma?\n\n"));
        assert_eq!((to.as_str(), subject.as_str()), ("Ada@example.com", "Re: Hello, does it run on Sonoma?"));
        assert_eq!(body, "\r\n\r\nOn 15 Nov 2026, Ada wrote:\r\n> Hello,\r\n> does it run\r\n> on Sonoma?");
        let [_, subject, body] = read(&link(Some(" "), "ada@example.com", "a\n\nb"));
        assert_eq!(
            (subject.as_str(), body.as_str()),
            ("Re: a b", "\r\n\r\nOn 15 Nov 2026, ada@example.com wrote:\r\n> a\r\n> \r\n> b")
        );
    }

    #[test]
    fn an_odd_address_is_the_only_recipient() {
        for (email, to) in [
            ("\"a b\"@x.example", "mailto:%22a%20b%22@x.example?"),
            ("\"a@b,c\"@x.example", "mailto:%22a%40b%2Cc%22@x.example?"),
            ("a+b@x.example", "mailto:a%2Bb@x.example?"),
            ("a%40b&cc=eve@x.example", "mailto:a%2540b%26cc%3Deve@x.example?"),
            ("a?bcc=eve#@x.example", "mailto:a%3Fbcc%3Deve%23@x.example?"),
            ("ada@münchen.example", "mailto:ada@xn--mnchen-3ya.example?"),
            ("ä@x.example", "mailto:%C3%A4@x.example?"),
            ("ada@x.example\r\nBcc: eve@x.example", "mailto:ada%40x.exampleBcc%3A%20eve@x.example?"),
            ("nobody", "mailto:nobody@?"),
        ] {
            let link = link(Some("A\r\nBcc: eve@x.example"), email, "Hi\u{1b}[31m & <b>\u{202e}?body=");
            assert!(link.starts_with(to), "{link}");
            let [_, subject, body] = read(&link);
            assert_eq!(subject, "Re: Hi\u{fffd}[31m & <b>\u{fffd}?body=");
            let expected =
                "\r\n\r\nOn 15 Nov 2026, A Bcc: eve@x.example wrote:\r\n> Hi\u{fffd}[31m & <b>\u{fffd}?body=";
            assert_eq!(body, expected);
        }
    }

    #[test]
    fn a_long_message_is_cut() {
        for text in
            ["word ".repeat(800), "x".repeat(4000), "🎭".repeat(4000), "a\nb\n\n".repeat(800), "é 漢\n".repeat(1000)]
        {
            let link = link(Some("Ada"), "ada@example.com", &text);
            assert!((1700..=MAX_ANSWER_LINK_BYTES).contains(&link.len()), "{} of {text}", link.len());
            let [_, _, body] = read(&link);
            let quote = body.split_once("wrote:\r\n> ").unwrap().1.strip_suffix("\r\n> […]").unwrap();
            assert!(text.starts_with(&quote.replace("\r\n> ", "\n")), "{quote}");
        }
        assert!(
            read(&link(None, "ada@example.com", &"word ".repeat(800)))[2].ends_with(" word\r\n> […]"),
            "whole words"
        );
        // Nothing is left for the quote.
        let email = format!("{}@{}.example", "!".repeat(64), "d".repeat(400));
        let wide = link(Some(&"🎭".repeat(100)), &email, &"🎭".repeat(4000));
        assert!(wide.len() < 2500 && read(&wide)[2].ends_with("wrote:\r\n> […]"), "{} bytes", wide.len());
    }
}

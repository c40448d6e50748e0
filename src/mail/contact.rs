//! Messages of the contact form as mails to the makers: each by itself, or many in a digest.

use std::fmt::Write;

use uuid::Uuid;

use super::compose::{Mail, MailAddress, Mailer, PlainMail};
use crate::domain::contact::{ReceivedMessage, reference};
use crate::domain::text::SenderName;
use crate::domain::time::Timestamp;

impl Mailer {
    /// One message. An answer to the mail goes to its sender.
    #[must_use]
    pub fn forward(&self, received: &ReceivedMessage, to: &MailAddress, at: Timestamp) -> Mail {
        self.write(PlainMail {
            id: received.id,
            to,
            subject: format!("Contact message [{}]", reference(received.id)),
            reply_to: Some(&received.message.email),
            at,
            text: &format!("{}\n{}", about(received), received.message.message.as_str()),
        })
    }

    /// Many messages in one mail called `id`. An answer to the mail goes to none of their senders.
    #[must_use]
    pub fn forward_digest(&self, id: Uuid, received: &[ReceivedMessage], to: &MailAddress, at: Timestamp) -> Mail {
        self.write(PlainMail {
            id,
            to,
            subject: format!("Contact messages [{}]", reference(id)),
            reply_to: None,
            at,
            text: &digest(received),
        })
    }
}

/// Each line of a message is marked, so that none can pass for the beginning of another message.
fn digest(received: &[ReceivedMessage]) -> String {
    let count = received.len();
    let mut text = format!(
        "{count} messages came within a short time, or while no mail could be sent.\n\
         Here they are, oldest first.\n"
    );
    for (number, received) in (1..).zip(received) {
        let _ = write!(text, "\n---- {number} of {count} ----\n\n{}\n", about(received));
        for line in lines(received.message.message.as_str()) {
            let _ = writeln!(text, "> {line}");
        }
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// Who wrote when, a line each.
fn about(received: &ReceivedMessage) -> String {
    let name = received.message.name.as_ref().map(SenderName::as_str).filter(|name| !name.trim().is_empty());
    format!(
        "Name: {}\nEmail: {}\nTime: {}\nReference: {}\n",
        name.map_or_else(|| "(not given)".to_owned(), on_one_line),
        received.message.email.as_typed(),
        received.at.rfc3339().replace('T', " ").replace('Z', " UTC"),
        reference(received.id),
    )
}

/// Nobody may start a line of ours, or turn one around: what could is shown as U+FFFD.
fn on_one_line(text: &str) -> String {
    text.replace(|c: char| ends_a_line(c) || turns_a_line(c) || c.is_control(), "\u{fffd}")
}

/// The ways to end a line that some mail reader knows.
const fn ends_a_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Marks that change the direction in which the rest of a line is read.
const fn turns_a_line(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn lines(text: &str) -> Vec<String> {
    text.replace("\r\n", "\n").split(ends_a_line).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::contact::ContactMessage;
    use crate::domain::email::EmailAddress;
    use crate::domain::mailbox::Mailbox;
    use crate::domain::relay::Relay;
    use crate::domain::text::MessageText;
    use proptest::prelude::*;

    /// The names of the lines in a head that is well-formed, and the body.
    fn taken_apart(mail: &Mail) -> (Vec<&str>, &str) {
        let text = std::str::from_utf8(&mail.bytes).unwrap();
        assert!(text.is_ascii());
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "line ends are those of mail: {text:?}");
        assert!(text.split("\r\n").all(|line| line.len() < 998));
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let lines = head.split("\r\n").filter(|line| !line.starts_with([' ', '\t']));
        (lines.map(|line| line.split_once(": ").unwrap().0).collect(), body)
    }

    proptest! {
        #[test]
        fn whatever_is_typed_the_head_has_its_own_lines_and_no_others(
            name in proptest::option::of(any::<String>()),
            local in "[a-z=?.0-9_-]{1,60}",
            message in any::<String>(),
        ) {
            let name = name.and_then(|name| SenderName::parse(&name).ok());
            let email = EmailAddress::parse(&format!("{local}@example.com"));
            let email = email.unwrap_or_else(|_| EmailAddress::parse("ada@example.com").unwrap());
            let message = MessageText::parse(&format!("{message}..")).unwrap();
            let at = Timestamp::from_unix_millis(1_794_744_000_000);
            let received = ReceivedMessage { id: Uuid::nil(), message: ContactMessage { name, email, message }, at };

            let mailbox = |text| Mailbox::parse(text).unwrap();
            let relay = Relay::parse("smtp://localhost").unwrap();
            let mailer = Mailer::new(relay, &mailbox("Troupe <hello@troupe.example>")).unwrap();
            let to = MailAddress::from_mailbox(&mailbox("makers@troupe.example")).unwrap();
            let single = mailer.forward(&received, &to, at);
            let (mut head, _) = taken_apart(&single);
            head.retain(|line| *line != "Reply-To");
            let expected = [
                "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type",
                "Content-Transfer-Encoding",
            ];
            prop_assert_eq!(&head, &expected);
            let digest = mailer.forward_digest(Uuid::nil(), &[received.clone(), received], &to, at);
            prop_assert_eq!(taken_apart(&digest).0, expected);
        }
    }

    #[test]
    fn however_a_line_ends_it_is_a_line() {
        assert_eq!(lines("a\r\nb\rc\nd\u{2028}e\u{85}\r\n"), ["a", "b", "c", "d", "e", "", ""]);
        assert_eq!(on_one_line("A\r\nB\u{202e}C\u{2029}\u{1b}D"), "A\u{fffd}\u{fffd}B\u{fffd}C\u{fffd}\u{fffd}D");
    }
}

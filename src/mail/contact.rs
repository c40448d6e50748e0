//! Contact messages as emails to the makers: one message per email, or many in a digest. The date of an email is that of its newest
//! message, so that an email that is sent again is exactly the same.

use std::fmt::Write;

use uuid::Uuid;

use super::compose::{Mail, MailAddress, Mailer, PlainMail, single_line};
use crate::domain::contact::{ReceivedMessage, reference};
use crate::domain::display_text::is_line_break;
use crate::domain::limits::{MAX_MAKER_MAIL_BYTES, MAX_MAKER_MAILS};
use crate::domain::plural::quantity;
use crate::domain::text::SenderName;
use crate::domain::time::Timestamp;

impl Mailer {
    /// Composes a mail with one message. Replies go to its sender.
    pub fn compose_contact(&self, received: &ReceivedMessage, to: &MailAddress) -> Mail {
        self.compose_plain(PlainMail {
            id: received.id,
            to,
            subject: format!("Contact message [{}]", reference(received.id)),
            reply_to: Some(&received.contact.email),
            at: received.at,
            text: &format!("{}\n{}", summary(received), received.contact.text.as_str()),
        })
    }

    /// Composes one mail with many messages. It has no Reply-To, as it has no single sender.
    pub fn compose_digest(&self, id: Uuid, received: &[ReceivedMessage], to: &MailAddress) -> Mail {
        self.compose_plain(PlainMail {
            id,
            to,
            subject: format!("Contact messages [{}]", reference(id)),
            reply_to: None,
            at: received.iter().map(|received| received.at).max().unwrap_or(Timestamp::from_unix_millis(0)),
            text: &digest(received),
        })
    }

    /// Composes a mail that says how many messages wait because the limit of mail to the makers is reached.
    pub fn compose_summary(&self, id: Uuid, waiting: u64, to: &MailAddress, at: Timestamp) -> Mail {
        self.compose_plain(PlainMail {
            id,
            to,
            subject: format!("Contact messages wait [{}]", reference(id)),
            reply_to: None,
            at,
            text: &summary_of_waiting(waiting),
        })
    }
}

fn summary_of_waiting(waiting: u64) -> String {
    format!(
        "{} now, because no more than {MAX_MAKER_MAILS} emails, or {} MiB of mail,\n\
         are sent to you in one hour. The rest follows as soon as there is room. Nothing is lost.\n\n\
         Read them on the server:  porchlight inbox list --waiting\n\
         Delete unwanted ones:     porchlight inbox discard --help",
        quantity(waiting, "contact message waits", "contact messages wait"),
        MAX_MAKER_MAIL_BYTES / (1024 * 1024),
    )
}

/// Every line of a message is quoted, so that none can pass for the start of another message.
fn digest(received: &[ReceivedMessage]) -> String {
    let count = received.len();
    let mut text = format!(
        "{count} messages came within a short time, or while no mail could be sent.\n\
         Here they are, oldest first.\n"
    );
    for (number, received) in (1..).zip(received) {
        let _ = write!(text, "\n---- {number} of {count} ----\n\n{}\n", summary(received));
        for line in lines(received.contact.text.as_str()) {
            let _ = writeln!(text, "> {line}");
        }
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// Sender, time and reference, one line each.
fn summary(received: &ReceivedMessage) -> String {
    let name = received.contact.name.as_ref().map(SenderName::as_str).filter(|name| !name.trim().is_empty());
    format!(
        "Name: {}\nEmail: {}\nTime: {}\nReference: {}\n",
        name.map_or_else(|| "(not given)".to_owned(), single_line),
        single_line(received.contact.email.as_typed()),
        received.at.rfc3339().replace('T', " ").replace('Z', " UTC"),
        reference(received.id),
    )
}

fn lines(text: &str) -> Vec<String> {
    text.replace("\r\n", "\n").split(is_line_break).map(str::to_owned).collect()
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

    /// Asserts that the mail is well-formed and returns the names of its headers, and the body.
    fn parse(mail: &Mail) -> (Vec<&str>, &str) {
        let text = std::str::from_utf8(&mail.bytes).unwrap();
        assert!(text.is_ascii());
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "line endings are CRLF: {text:?}");
        assert!(text.split("\r\n").all(|line| line.len() < 998));
        let (headers, body) = text.split_once("\r\n\r\n").unwrap();
        let lines = headers.split("\r\n").filter(|line| !line.starts_with([' ', '\t']));
        (lines.map(|line| line.split_once(": ").unwrap().0).collect(), body)
    }

    proptest! {
        #[test]
        fn no_input_adds_a_header(
            name in proptest::option::of(any::<String>()),
            local in "[a-z=?.0-9_-]{1,60}",
            message in any::<String>(),
        ) {
            let name = name.and_then(|name| SenderName::parse(&name).ok());
            let email = EmailAddress::parse(&format!("{local}@example.com"));
            let email = email.unwrap_or_else(|_| EmailAddress::parse("ada@example.com").unwrap());
            let text = MessageText::parse(&format!("{message}..")).unwrap();
            let at = Timestamp::from_unix_millis(1_794_744_000_000);
            let received = ReceivedMessage { id: Uuid::nil(), contact: ContactMessage { name, email, text }, at };

            let mailbox = |text| Mailbox::parse(text).unwrap();
            let relay = Relay::parse("smtp://localhost").unwrap();
            let mailer = Mailer::new(relay, &mailbox("Troupe <hello@troupe.example>")).unwrap();
            let to = MailAddress::from_mailbox(&mailbox("makers@troupe.example")).unwrap();
            let single = mailer.compose_contact(&received, &to);
            let (mut headers, _) = parse(&single);
            headers.retain(|name| *name != "Reply-To");
            let expected = [
                "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type",
                "Content-Transfer-Encoding",
            ];
            prop_assert_eq!(&headers, &expected);
            let digest = mailer.compose_digest(Uuid::nil(), &[received.clone(), received], &to);
            prop_assert_eq!(parse(&digest).0, expected);
        }
    }

    #[test]
    fn every_kind_of_line_ending_ends_a_line() {
        assert_eq!(lines("a\r\nb\rc\nd\u{2028}e\u{85}\r\n"), ["a", "b", "c", "d", "e", "", ""]);
        assert_eq!(single_line("A\r\nB\u{202e}C\u{2029}\u{1b}D"), "A\u{fffd}\u{fffd}B\u{fffd}C\u{fffd}\u{fffd}D");
    }
}

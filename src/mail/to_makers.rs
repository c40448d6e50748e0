//! The mails to the makers: contact messages, one per mail or many in a digest, and what they have to know.
//!
//! The date of a mail with messages is that of its newest one, so that a mail that is sent again is exactly the same.

use std::fmt::Write;

use uuid::Uuid;

use super::compose::{Mail, MailAddress, MailParts, Mailer, single_line};
use crate::domain::contact::{ReceivedMessage, reference};
use crate::domain::limits::{MAX_MAKER_MAIL_BYTES, MAX_MAKER_MAILS};
use crate::domain::outbox::Trouble;
use crate::domain::text::{lines, quantity};
use crate::domain::time::Timestamp;

impl Mailer {
    /// Composes a mail with one message. Replies go to its sender.
    pub fn compose_contact(&self, received: &ReceivedMessage, to: &MailAddress) -> Mail {
        let subject = received.subject();
        let text = format!("{}\n{}", summary(received), lines(received.contact.text.as_str()).join("\n"));
        let parts = MailParts::new(received.id, to, &subject, &text, received.at);
        self.compose(&MailParts { reply_to: Some(&received.contact.email), ..parts })
    }

    /// Composes one mail with many messages. It has no Reply-To, as it has no single sender.
    pub fn compose_digest(&self, id: Uuid, received: &[ReceivedMessage], to: &MailAddress) -> Mail {
        let subject = format!("Contact messages [{}]", reference(id));
        let at = received.iter().map(|received| received.at).max().unwrap_or(Timestamp::from_unix_millis(0));
        self.compose(&MailParts::new(id, to, &subject, &digest(received), at))
    }

    /// Composes a mail that says how many messages wait because the limit of mail to the makers is reached.
    pub fn compose_summary(&self, id: Uuid, waiting: u64, to: &MailAddress, at: Timestamp) -> Mail {
        let subject = format!("Contact messages wait [{}]", reference(id));
        self.compose(&MailParts::new(id, to, &subject, &summary_of_waiting(waiting), at))
    }

    /// Composes a mail that tells the makers that the mail server rejected the first recipients of a letter. Whether it accepts
    /// this mail shows whether it accepts any.
    pub fn compose_rejected_mailboxes(&self, id: Uuid, letter: &str, to: &MailAddress, at: Timestamp) -> Mail {
        let letter = single_line(letter);
        let subject = format!("{letter}: the first recipients were rejected");
        let text = format!(
            "The mail server rejected the first recipients of “{letter}”: it says that their mailboxes do not exist. This mail \
             shows that it accepts others, so the letter goes on.\n\nThe rejected addresses get no further letters as soon as the \
             mail server has accepted the letter for anybody else. `porchlight letter status` shows how many were refused.\n"
        );
        self.compose(&MailParts::new(id, to, &subject, &text, at))
    }
}

/// Returns the subject and the text of the mail that says what needs attention. `machine` noticed it.
pub fn alert_texts(app: &str, site: &str, machine: &str, troubles: &[Trouble]) -> (String, String) {
    let mut text = format!("On {site}, this needs attention:\n");
    for (number, Trouble { about, problem, to_do }) in (1..).zip(troubles) {
        let problem = single_line(problem);
        let _ = write!(text, "\n{number}. {about}\n\n{problem}\n\nWhat to do: {to_do}\n");
    }
    let _ = write!(
        text,
        "\nSeen on the machine {}. `porchlight check` there looks at everything. You get such a mail at most once a day, \
         and none once nothing needs attention.",
        single_line(machine)
    );
    (format!("{}'s site needs attention", single_line(app)), text)
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
    format!(
        "Name: {}\nEmail: {}\nTime: {}\nReference: {}\n",
        received.contact.name().map_or_else(|| "(not given)".to_owned(), single_line),
        single_line(received.contact.email.as_typed()),
        received.at.rfc3339().replace('T', " ").replace('Z', " UTC"),
        reference(received.id),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::contact::ContactMessage;
    use crate::domain::mail::{EmailAddress, Mailbox, Relay};
    use crate::domain::text::{MessageText, SenderName};
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
    fn a_line_stays_one_line() {
        assert_eq!(single_line("A\r\nB\u{202e}C\u{2029}\u{1b}D"), "A\u{fffd}\u{fffd}B\u{fffd}C\u{fffd}\u{fffd}D");
    }
}

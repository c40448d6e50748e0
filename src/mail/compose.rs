//! The head and frame of every mail, and who sends it.

use std::time::{Duration, UNIX_EPOCH};

use lettre::Address;
use lettre::message::header::{Date, From, HeaderName, HeaderValue, Headers, MIME_VERSION_1_0, MessageId, Subject, To};
use lettre::message::{Mailbox as Named, Mailboxes, SinglePart};
use uuid::Uuid;

use crate::domain::email::EmailAddress;
use crate::domain::mailbox::Mailbox;
use crate::domain::relay::Relay;
use crate::domain::time::Timestamp;

/// Whoever makes mails: knows the sender of all of them, and the mail server that takes them.
#[derive(Clone, Debug)]
pub struct Mailer {
    pub(super) relay: Relay,
    pub(super) from: MailAddress,
    /// The domain by which we introduce ourselves and name our mails.
    pub(super) domain: String,
}

/// Somebody to whom mail can be sent.
#[derive(Clone, Debug)]
pub struct MailAddress(Named);

/// An address that is right, and that mail servers do not take all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no mail server would take this address")]
pub struct UnsupportedAddress;

/// A mail, made and addressed.
#[derive(Clone, Debug)]
pub struct Mail {
    pub(super) from: Address,
    pub(super) to: Address,
    pub(super) bytes: Vec<u8>,
}

impl MailAddress {
    /// Somebody of whom we know the address alone.
    ///
    /// # Errors
    /// When it is nobody to whom mail can be sent.
    pub fn from_email(email: &EmailAddress) -> Result<Self, UnsupportedAddress> {
        Ok(Self(Named::new(None, email.in_ascii().parse().map_err(|_| UnsupportedAddress)?)))
    }

    /// # Errors
    /// When it is nobody to whom mail can be sent.
    pub fn from_mailbox(mailbox: &Mailbox) -> Result<Self, UnsupportedAddress> {
        let address = mailbox.email().in_ascii().parse().map_err(|_| UnsupportedAddress)?;
        Ok(Self(Named::new(mailbox.name().map(str::to_owned), address)))
    }
}

impl Mailer {
    /// # Errors
    /// When nobody can send mail as `from`.
    pub fn new(relay: Relay, from: &Mailbox) -> Result<Self, UnsupportedAddress> {
        Ok(Self { relay, from: MailAddress::from_mailbox(from)?, domain: from.email().domain().to_owned() })
    }

    /// A mail of plain text. The same `id` makes the same Message-ID, so that a repeated mail is known
    /// as such. `reply_to` is the only part of the head that a stranger may have typed; an address
    /// that mail readers might take for an encoded text is left out rather than trusted.
    pub(super) fn write(&self, letter: PlainMail<'_>) -> Mail {
        let PlainMail { id, to, subject, reply_to, at, text } = letter;
        let reply_to = reply_to.map(EmailAddress::in_ascii).filter(|address| !looks_encoded(address));
        // So that no machine answers it.
        let unanswered = header("Auto-Submitted", "auto-generated".to_owned());
        let more = reply_to.map(|address| header("Reply-To", address)).into_iter().chain([unanswered]);
        self.frame(id, to, &subject, at, more, &SinglePart::plain(with_one_kind_of_line_end(text)).formatted())
    }

    /// The head that all mails have, `more` of it, and a body that has its own part of the head.
    pub(super) fn frame(
        &self,
        id: Uuid,
        MailAddress(to): &MailAddress,
        subject: &str,
        at: Timestamp,
        more: impl IntoIterator<Item = HeaderValue>,
        body: &[u8],
    ) -> Mail {
        let MailAddress(from) = &self.from;
        let since = Duration::from_millis(u64::try_from(at.unix_millis()).unwrap_or_default());
        let mut head = Headers::new();
        head.set(From::from(Mailboxes::from(from.clone())));
        head.set(To::from(Mailboxes::from(to.clone())));
        head.set(Subject::from(subject.to_owned()));
        head.set(Date::new(UNIX_EPOCH + since));
        head.set(MessageId::from(format!("<{id}@{}>", self.domain)));
        for header in more {
            head.insert_raw(header);
        }
        head.set(MIME_VERSION_1_0);
        // The last line ends where the conversation with the mail server has it end.
        let body = body.strip_suffix(b"\r\n").unwrap_or(body);
        let bytes = [head.to_string().as_bytes(), body].concat();
        Mail { from: from.email.clone(), to: to.email.clone(), bytes }
    }
}

/// What a mail is made from.
pub(super) struct PlainMail<'a> {
    pub id: Uuid,
    pub to: &'a MailAddress,
    pub subject: String,
    pub reply_to: Option<&'a EmailAddress>,
    pub at: Timestamp,
    pub text: &'a str,
}

/// Whether a mail reader that is not careful would read something else: `=?utf-8?q?text?=`.
fn looks_encoded(address: &str) -> bool {
    address.split_once("=?").is_some_and(|(_, rest)| rest.contains("?="))
}

/// A line feed, which becomes what ends a line in mail: a lone copier return has no place there.
pub(super) fn with_one_kind_of_line_end(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

pub(super) fn header(name: &'static str, value: String) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), value)
}

//! Headers, framing and the signature that all emails share.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use lettre::Address;
use lettre::message::header::{
    ContentType, Date, From, HeaderName, HeaderValue, Headers, MIME_VERSION_1_0, MessageId, Subject, To,
};
use lettre::message::{self, Attachment, Mailboxes, MultiPart, SinglePart};
use uuid::Uuid;

use super::dkim::DkimSigner;
use crate::blocking::blocking;
use crate::config::{InvalidSettings, MailSettings};
use crate::domain::letters::{BounceAddress, BounceTag, LetterImage, ListId};
use crate::domain::mail::{EmailAddress, Mailbox, Relay};
use crate::domain::text::{is_control_or_bidi, is_line_break};
use crate::domain::time::Timestamp;

const LINE_ENDING: &[u8] = b"\r\n";

/// Composes emails from one sender, and sends them through one mail server.
#[derive(Clone, Debug)]
pub struct Mailer {
    pub(super) relay: Relay,
    from: MailAddress,
    /// The sender's domain, for `EHLO` and for Message-IDs.
    pub(super) domain: String,
    /// `None`: mail is not signed.
    dkim: Option<Arc<DkimSigner>>,
    /// Undeliverable letters are returned to this address, with the tag of the copy.
    bounce_address: Option<BounceAddress>,
}

/// A sender or recipient, with or without a display name.
#[derive(Clone, Debug)]
pub struct MailAddress(pub(super) message::Mailbox);

/// A valid address that SMTP cannot transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("mail servers do not accept this address")]
pub struct UnsupportedAddress;

/// A composed mail with its envelope.
#[derive(Clone, Debug)]
pub struct Mail {
    pub(super) from: Address,
    pub(super) to: Address,
    pub(super) bytes: Vec<u8>,
}

impl Mail {
    /// The number of bytes, without the envelope.
    pub const fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The mail as it arrives, without the envelope.
    pub fn source(&self) -> Vec<u8> {
        [&self.bytes, LINE_ENDING].concat()
    }
}

impl MailAddress {
    pub fn from_email(email: &EmailAddress) -> Result<Self, UnsupportedAddress> {
        let address = email.in_ascii();
        if address.contains(char::is_control) {
            return Err(UnsupportedAddress);
        }
        Ok(Self(message::Mailbox::new(None, address.parse().map_err(|_| UnsupportedAddress)?)))
    }

    pub fn from_mailbox(mailbox: &Mailbox) -> Result<Self, UnsupportedAddress> {
        let address = mailbox.email().in_ascii().parse().map_err(|_| UnsupportedAddress)?;
        Ok(Self(message::Mailbox::new(mailbox.name().map(str::to_owned), address)))
    }
}

impl Mailer {
    /// Reads the key of DKIM, if there is one.
    pub fn from_settings(mail: &MailSettings) -> Result<Self, InvalidSettings> {
        let mailer = Self::new(mail.relay.clone(), &mail.from).map_err(|why| InvalidSettings::new("mail_from", why))?;
        let dkim = mail.dkim.as_ref().map(|dkim| DkimSigner::from_settings(dkim, &mailer.domain)).transpose()?;
        let bounce_address = mail.bounce_address.clone();
        if let Some(address) = &bounce_address {
            MailAddress::from_email(address.email()).map_err(|why| InvalidSettings::new("bounce_address", why))?;
        }
        Ok(Self { dkim: dkim.map(Arc::new), bounce_address, ..mailer })
    }

    /// A mailer that neither signs nor tags.
    pub fn new(relay: Relay, from: &Mailbox) -> Result<Self, UnsupportedAddress> {
        let domain = from.email().domain().to_owned();
        Ok(Self { relay, from: MailAddress::from_mailbox(from)?, domain, dkim: None, bounce_address: None })
    }

    pub fn dkim(&self) -> Option<&DkimSigner> {
        self.dkim.as_deref()
    }

    /// Whether each letter has an envelope sender of its own, which needs a tag.
    pub const fn tags_letters(&self) -> bool {
        self.bounce_address.is_some()
    }

    /// Composes a mail, and signs it.
    pub fn compose(&self, mail: &MailParts<'_>) -> Mail {
        blocking(|| self.compose_and_sign(mail))
    }

    fn compose_and_sign(&self, mail: &MailParts<'_>) -> Mail {
        let MailParts { id, to: MailAddress(to), subject, text, at, .. } = *mail;
        let text = normalize_line_endings(text);
        let part = match mail.html {
            None => SinglePart::plain(text).formatted(),
            Some(html) => {
                let alternative = MultiPart::alternative().singlepart(SinglePart::plain(text));
                let html = SinglePart::html(normalize_line_endings(html));
                if mail.images.is_empty() {
                    alternative.singlepart(html).formatted()
                } else {
                    let related = MultiPart::related().singlepart(html);
                    let images = mail.images.iter().filter_map(|image| image_part(image));
                    alternative.multipart(images.fold(related, MultiPart::singlepart)).formatted()
                }
            }
        };
        let MailAddress(from) = &self.from;
        let unix_time = Duration::from_millis(u64::try_from(at.unix_millis()).unwrap_or_default());
        let mut headers = Headers::new();
        headers.set(From::from(Mailboxes::from(from.clone())));
        headers.set(To::from(Mailboxes::from(to.clone())));
        headers.set(Subject::from(subject.to_owned()));
        headers.set(Date::new(UNIX_EPOCH + unix_time));
        headers.set(MessageId::from(format!("<{id}@{}>", self.domain)));
        for (name, value) in mail.own_headers() {
            headers.insert_raw(HeaderValue::new(HeaderName::new_from_ascii_str(name), value));
        }
        headers.set(MIME_VERSION_1_0);
        // SMTP's end-of-data marker brings the last line ending.
        let part = part.strip_suffix(LINE_ENDING).unwrap_or(&part);
        let unsigned = [headers.to_string().as_bytes(), part].concat();
        let signature = self.dkim().map(|dkim| {
            dkim.signature(&unsigned, at).unwrap_or_else(|| {
                tracing::error!("a mail could not be signed and is sent without a signature");
                String::new()
            })
        });
        let signature = signature.unwrap_or_default();
        let bytes = [signature.as_bytes(), &unsigned].concat();
        let returned_to = self.bounce_address.as_ref().zip(mail.bounce_tag);
        let returned_to = returned_to.and_then(|(to, tag)| MailAddress::from_email(&to.tagged(tag)).ok());
        let from = returned_to.map_or_else(|| from.email.clone(), |MailAddress(address)| address.email);
        Mail { from, to: to.email.clone(), bytes }
    }
}

/// An image that the HTML of the mail shows.
fn image_part(image: &LetterImage) -> Option<SinglePart> {
    let media_type = ContentType::parse(image.format.as_str()).ok()?;
    let attachment = Attachment::new_inline_with_name(image.content_id(), image.name.file_name().to_owned());
    Some(attachment.body(image.bytes.clone(), media_type))
}

/// What a mail is composed of.
#[derive(Clone, Copy, Debug)]
pub struct MailParts<'a> {
    /// The same id gives the same Message-ID, so that mail clients recognize a repeated mail.
    pub id: Uuid,
    pub to: &'a MailAddress,
    pub subject: &'a str,
    pub text: &'a str,
    /// `None`: a mail of plain text.
    pub html: Option<&'a str>,
    /// Embedded in the HTML.
    pub images: &'a [Arc<LetterImage>],
    pub at: Timestamp,
    /// The only header that a visitor controls. An address that is not valid any more, or that mail clients might decode as an
    /// encoded word, is left out.
    pub reply_to: Option<&'a EmailAddress>,
    /// Of a letter, for one-click unsubscribe (RFC 8058).
    pub unsubscribe_url: Option<&'a str>,
    pub list_id: Option<&'a ListId>,
    /// Becomes a part of the envelope sender, if letters are tagged. `None`: mail is returned to the sender.
    pub bounce_tag: Option<&'a BounceTag>,
}

impl<'a> MailParts<'a> {
    /// A mail of plain text that is not replied to.
    pub const fn new(id: Uuid, to: &'a MailAddress, subject: &'a str, text: &'a str, at: Timestamp) -> Self {
        let (html, images, reply_to, unsubscribe_url, list_id, bounce_tag) =
            (None, [].as_slice(), None, None, None, None);
        Self { id, to, subject, text, html, images, at, reply_to, unsubscribe_url, list_id, bounce_tag }
    }

    /// The headers that not every mail has.
    fn own_headers(&self) -> Vec<(&'static str, String)> {
        if let Some(url) = self.unsubscribe_url {
            let one_click = "List-Unsubscribe=One-Click".to_owned();
            let list_id = self.list_id.map(|id| ("List-Id", id.to_string()));
            let unsubscribe = [("List-Unsubscribe", format!("<{url}>")), ("List-Unsubscribe-Post", one_click)];
            return list_id.into_iter().chain(unsubscribe).collect();
        }
        // A stored address may break the rules of today.
        let is_usable = |address: &String| EmailAddress::parse(address).is_ok() && !looks_encoded(address);
        let reply_to = self.reply_to.map(EmailAddress::in_ascii).filter(is_usable);
        // Keeps autoresponders from replying.
        let auto_submitted = ("Auto-Submitted", "auto-generated".to_owned());
        reply_to.map(|address| ("Reply-To", address)).into_iter().chain([auto_submitted]).collect()
    }
}

/// Whether a lenient mail client would decode the address as an encoded word (`=?utf-8?q?text?=`).
fn looks_encoded(address: &str) -> bool {
    address.split_once("=?").is_some_and(|(_, rest)| rest.contains("?="))
}

/// Turns every line ending into a line feed, which lettre encodes as CRLF. A lone carriage return is invalid in mail.
fn normalize_line_endings(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Replaces line breaks, controls and bidirectional control characters by U+FFFD, so that the text can neither
/// start a line nor reverse one.
pub(super) fn single_line(text: &str) -> String {
    text.replace(|c: char| is_line_break(c) || is_control_or_bidi(c), "\u{fffd}")
}

//! The monthly letter as a mail: text and HTML, with the headers for one-click unsubscribe (RFC 8058). Also the mail that
//! tells the makers that its first recipients were rejected.

use lettre::message::MultiPart;
use uuid::Uuid;

use super::compose::{Mail, MailAddress, Mailer, PlainMail, header, normalize_line_endings, single_line};
use crate::domain::bounce::BounceTag;
use crate::domain::time::Timestamp;

/// One recipient's copy of the letter.
#[derive(Debug)]
pub struct LetterMail<'a> {
    pub id: Uuid,
    pub to: &'a MailAddress,
    pub subject: &'a str,
    pub text: &'a str,
    pub html: &'a str,
    pub unsubscribe_url: &'a str,
    /// Becomes a part of the envelope sender, if letters are tagged.
    pub bounce_tag: Option<&'a BounceTag>,
    pub at: Timestamp,
}

/// Tells the makers that the mail server rejected the first recipients of a letter. Whether it accepts this mail shows whether
/// it accepts any.
#[derive(Debug)]
pub struct RejectedMailboxesMail<'a> {
    pub id: Uuid,
    pub to: &'a MailAddress,
    /// The subject of the letter.
    pub letter: &'a str,
    pub at: Timestamp,
}

impl Mailer {
    pub fn compose_rejected_mailboxes(&self, mail: &RejectedMailboxesMail<'_>) -> Mail {
        let letter = single_line(mail.letter);
        let text = format!(
            "The mail server rejected the first recipients of “{letter}”: it says that their mailboxes do not exist. This mail \
             shows that it accepts others, so the letter goes on.\n\nThe rejected addresses get no further letters as soon as the \
             mail server has accepted the letter for anybody else. `porchlight letter status` shows how many were refused.\n"
        );
        self.compose_plain(PlainMail {
            id: mail.id,
            to: mail.to,
            subject: format!("{letter}: the first recipients were rejected"),
            reply_to: None,
            at: mail.at,
            text: &text,
        })
    }

    pub fn compose_letter(&self, mail: &LetterMail<'_>) -> Mail {
        let parts =
            MultiPart::alternative_plain_html(normalize_line_endings(mail.text), normalize_line_endings(mail.html));
        let unsubscribe = [
            header("List-Unsubscribe", format!("<{}>", mail.unsubscribe_url)),
            header("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()),
        ];
        let letter = self.compose(mail.id, mail.to, mail.subject, mail.at, unsubscribe, &parts.formatted());
        match self.return_address(mail.bounce_tag) {
            Some(MailAddress(returned)) => Mail { from: returned.email, ..letter },
            None => letter,
        }
    }

    /// Whether each letter has an envelope sender of its own, which needs a tag.
    pub const fn tags_letters(&self) -> bool {
        self.bounce_address.is_some()
    }

    /// The address that the letter with this tag is returned to if it cannot be delivered. `None`: to the sender.
    fn return_address(&self, tag: Option<&BounceTag>) -> Option<MailAddress> {
        MailAddress::from_email(&self.bounce_address.as_ref()?.tagged(tag?)).ok()
    }
}

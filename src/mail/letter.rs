//! The monthly letter as a mail: as text and as HTML, with the way out in its head.

use lettre::message::MultiPart;
use lettre::message::header::HeaderValue;
use uuid::Uuid;

use super::compose::{Mail, MailAddress, Mailer, header, with_one_kind_of_line_end};
use crate::domain::time::Timestamp;

/// What one person's copy is made from.
#[derive(Debug)]
pub struct LetterMail<'a> {
    pub id: Uuid,
    pub to: &'a MailAddress,
    pub subject: &'a str,
    pub text: &'a str,
    pub html: &'a str,
    /// Where one click unsubscribes (RFC 8058).
    pub unsubscribe_url: &'a str,
    pub at: Timestamp,
}

impl Mailer {
    #[must_use]
    pub fn monthly(&self, mail: &LetterMail<'_>) -> Mail {
        let parts = MultiPart::alternative_plain_html(
            with_one_kind_of_line_end(mail.text),
            with_one_kind_of_line_end(mail.html),
        );
        let way_out: [HeaderValue; 2] = [
            header("List-Unsubscribe", format!("<{}>", mail.unsubscribe_url)),
            header("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()),
        ];
        self.frame(mail.id, mail.to, mail.subject, mail.at, way_out, &parts.formatted())
    }
}

//! The mail that asks a person to confirm an opt-in.

use lettre::message::MultiPart;
use uuid::Uuid;

use super::compose::{Mail, MailAddress, Mailer, header, normalize_line_endings};
use crate::domain::time::Timestamp;

/// The parts of the mail. The same `id` gives the same Message-ID.
#[derive(Debug)]
pub struct ConfirmationMail<'a> {
    pub id: Uuid,
    pub to: &'a MailAddress,
    pub subject: &'a str,
    pub text: &'a str,
    pub html: &'a str,
    pub at: Timestamp,
}

impl Mailer {
    pub fn compose_confirmation(&self, mail: &ConfirmationMail<'_>) -> Mail {
        let parts =
            MultiPart::alternative_plain_html(normalize_line_endings(mail.text), normalize_line_endings(mail.html));
        // Keeps autoresponders from replying.
        let auto_submitted = header("Auto-Submitted", "auto-generated".to_owned());
        self.compose(mail.id, mail.to, mail.subject, mail.at, [auto_submitted], &parts.formatted())
    }
}

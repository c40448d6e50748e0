//! The mail that tells the makers what needs attention.

use std::fmt::Write;

use uuid::Uuid;

use super::compose::{Mail, MailAddress, Mailer, PlainMail, single_line};
use crate::domain::maker_mail::Trouble;
use crate::domain::time::Timestamp;

/// What the mail is made of.
#[derive(Debug)]
pub struct Alert<'a> {
    /// The name of the app.
    pub app: &'a str,
    /// The URL of the site.
    pub site: &'a str,
    /// The name of the machine that noticed it.
    pub machine: &'a str,
    pub troubles: &'a [Trouble],
}

impl Alert<'_> {
    pub fn subject(&self) -> String {
        format!("{}'s site needs a hand", single_line(self.app))
    }

    pub fn text(&self) -> String {
        let mut text = format!("On {}, this needs a hand:\n", self.site);
        for (number, Trouble { about, problem, to_do }) in (1..).zip(self.troubles) {
            let problem = single_line(problem);
            let _ = write!(text, "\n{number}. {about}\n\n{problem}\n\nWhat to do: {to_do}\n");
        }
        let _ = write!(
            text,
            "\nSeen on the machine {}. `porchlight check` there looks at everything. You get such a mail at most once a day, \
             and none once all is well.",
            single_line(self.machine)
        );
        text
    }
}

impl Mailer {
    pub fn compose_alert(&self, id: Uuid, subject: &str, text: &str, to: &MailAddress, at: Timestamp) -> Mail {
        self.compose_plain(PlainMail { id, to, subject: subject.to_owned(), reply_to: None, at, text })
    }
}

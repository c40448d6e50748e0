//! The mail that tells the makers what needs a hand.

use std::fmt::Write;

use uuid::Uuid;

use super::compose::{Mail, MailAddress, Mailer, PlainMail, single_line};
use crate::domain::maker_mail::Trouble;
use crate::domain::time::Timestamp;

#[derive(Debug)]
pub struct TroubleMail<'a> {
    pub id: Uuid,
    pub to: &'a MailAddress,
    /// The name of the app.
    pub app: &'a str,
    /// The URL of the site.
    pub site: &'a str,
    /// The name of the machine that sends it.
    pub machine: &'a str,
    pub troubles: &'a [Trouble],
    pub at: Timestamp,
}

impl Mailer {
    pub fn compose_troubles(&self, mail: &TroubleMail<'_>) -> Mail {
        self.compose_plain(PlainMail {
            id: mail.id,
            to: mail.to,
            subject: format!("{}'s site needs a hand", single_line(mail.app)),
            reply_to: None,
            at: mail.at,
            text: &text(mail),
        })
    }
}

fn text(TroubleMail { site, machine, troubles, .. }: &TroubleMail<'_>) -> String {
    let mut text = format!("On {site}, this needs a hand:\n");
    for (number, Trouble { about, problem, to_do }) in (1..).zip(*troubles) {
        let problem = single_line(problem);
        let _ = write!(text, "\n{number}. {about}\n\n{problem}\n\nWhat to do: {to_do}\n");
    }
    let _ = write!(
        text,
        "\nSeen on the machine {}. `porchlight check` there looks at everything. You get such a mail at most once a day, \
         and none once all is well.",
        single_line(machine)
    );
    text
}

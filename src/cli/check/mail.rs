//! Whether mail gets away.

use std::time::Duration;

use tokio::time::timeout;

use super::finding::Finding;
use super::sender::about_sender;
use crate::config::{InvalidSettings, MailSettings, Settings};
use crate::mail::{MailAddress, Mailer};
use crate::probe::NameServers;

/// Whoever waits for a mail server at a terminal waits no longer.
const MAIL_WITHIN: Duration = Duration::from_secs(20);

pub(super) async fn about_mail(settings: &Settings, name_servers: &NameServers) -> Vec<Finding> {
    let Some(mail) = &settings.mail else {
        let words = "Messages are stored, and not mailed to anybody. Set `smtp_url`.";
        return vec![Finding::note("mail", words)];
    };
    let (server, sender) = tokio::join!(about_mail_server(mail), about_sender(mail, name_servers));
    vec![server, sender]
}

/// Connects and logs in, and sends nothing.
async fn about_mail_server(mail: &MailSettings) -> Finding {
    const NAME: &str = "mail";
    if let Err(why) = MailAddress::from_mailbox(&mail.contact_to) {
        return Finding::trouble(NAME, InvalidSettings::of("contact_to", why).to_string());
    }
    let mailer = match Mailer::new(mail.relay.clone(), &mail.from) {
        Ok(mailer) => mailer,
        Err(why) => return Finding::trouble(NAME, InvalidSettings::of("mail_from", why).to_string()),
    };
    let away = |why: &str| Finding::trouble(NAME, format!("{} cannot be used: {why}. Check `smtp_url`.", mail.relay));
    match timeout(MAIL_WITHIN, mailer.connect()).await {
        Ok(Ok(connection)) => {
            connection.close().await;
            let login = if mail.relay.login().is_some() { "and lets us in" } else { "and asks for no password" };
            Finding::good(NAME, format!("{} answers {login}", mail.relay))
        }
        Ok(Err(trouble)) => away(trouble.detail()),
        Err(_) => away("it does not answer"),
    }
}

//! Checks whether mail can be sent.

use std::time::Duration;

use tokio::time::timeout;

use super::dkim::check_dkim;
use super::finding::Finding;
use super::sender::check_sender;
use crate::actions::MAIL_STEP;
use crate::config::{InvalidSettings, MailSettings, Settings};
use crate::domain::relay::Security;
use crate::mail::{MailAddress, Mailer};
use crate::probe::NameServers;

const NAME: &str = "mail";
/// How long connecting to the mail server and logging in may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) async fn check_mail(settings: &Settings, name_servers: &NameServers) -> Vec<Finding> {
    let Some(mail) = &settings.mail else {
        return vec![Finding::note(NAME, MAIL_STEP)];
    };
    let mailer = match Mailer::from_settings(mail) {
        Ok(mailer) => mailer,
        Err(error) => return vec![Finding::failed(NAME, error.to_string()), check_sender(mail, name_servers).await],
    };
    let (server, sender, dkim) = tokio::join!(
        check_mail_server(mail, &mailer),
        check_sender(mail, name_servers),
        check_dkim(mailer.dkim(), name_servers)
    );
    let kept = settings
        .keep_messages
        .map(|keep| Finding::ok("messages", format!("deleted {keep} after they were forwarded (`keep_messages`)")));
    [Some(server), Some(sender), dkim, kept].into_iter().flatten().collect()
}

/// Connects and logs in, without sending anything.
async fn check_mail_server(mail: &MailSettings, mailer: &Mailer) -> Finding {
    if let Err(error) = MailAddress::from_mailbox(&mail.contact_to) {
        return Finding::failed(NAME, InvalidSettings::new("contact_to", error).to_string());
    }
    let error = match timeout(CONNECT_TIMEOUT, mailer.connect()).await {
        Ok(Ok(connection)) => {
            connection.close().await;
            let login = if mail.relay.login().is_some() { "the login works" } else { "no login is set" };
            let detail = format!("{} accepts connections, {}; {login}", mail.relay, mail.relay.security_in_words());
            return match (mail.relay.security(), mail.relay.is_trusted_local()) {
                (Security::Off, false) => Finding::note(
                    NAME,
                    format!(
                        "{detail}. Anyone on the network path can read all mail. Remove `?tls=off` if the server offers TLS."
                    ),
                ),
                _ => Finding::ok(NAME, detail),
            };
        }
        Ok(Err(failure)) => failure.detail().to_owned(),
        Err(_) => "it did not respond in time".to_owned(),
    };
    Finding::failed(NAME, format!("{} cannot be used: {error}. Check `smtp_url`.", mail.relay))
}

//! Checks whether mail can be sent, and whether receivers accept it: the DNS records of the sender's domain, and the public
//! key that verifies signatures. If the mail server signs, only it knows the name of the record with its key.

use std::time::Duration;

use tokio::time::timeout;

use super::PROBE_TIMEOUT;
use super::finding::Finding;
use crate::actions::MAIL_STEP;
use crate::config::{InvalidSettings, MailSettings, Settings};
use crate::domain::dkim::{KeyKind, Published};
use crate::domain::relay::Security;
use crate::mail::{DkimSigner, MailAddress, Mailer};
use crate::probe::{DnsFailure, MxStatus, NameServers};

const MAIL: &str = "mail";
const SENDER: &str = "sender";
const DKIM: &str = "dkim";
/// How long connecting to the mail server and logging in may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

pub(super) async fn check_mail(settings: &Settings, name_servers: &NameServers) -> Vec<Finding> {
    let Some(mail) = &settings.mail else {
        return vec![Finding::note(MAIL, MAIL_STEP)];
    };
    let mailer = match Mailer::from_settings(mail) {
        Ok(mailer) => mailer,
        Err(error) => return vec![Finding::failed(MAIL, error.to_string()), check_sender(mail, name_servers).await],
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
        return Finding::failed(MAIL, InvalidSettings::new("contact_to", error).to_string());
    }
    let error = match timeout(CONNECT_TIMEOUT, mailer.connect()).await {
        Ok(Ok(connection)) => {
            connection.close().await;
            let login = if mail.relay.login().is_some() { "the login works" } else { "no login is set" };
            let detail = format!("{} accepts connections, {}; {login}", mail.relay, mail.relay.security_in_words());
            return match (mail.relay.security(), mail.relay.is_trusted_local()) {
                (Security::Off, false) => Finding::note(
                    MAIL,
                    format!(
                        "{detail}. Anyone on the network path can read all mail. Remove `?tls=off` if the server offers TLS."
                    ),
                ),
                _ => Finding::ok(MAIL, detail),
            };
        }
        Ok(Err(failure)) => failure.detail().to_owned(),
        Err(_) => "it did not respond in time".to_owned(),
    };
    Finding::failed(MAIL, format!("{} cannot be used: {error}. Check `smtp_url`.", mail.relay))
}

const PRINTED: &str = "the TXT record that `porchlight mail record` prints";

/// Returns `None` if mail is not signed here.
async fn check_dkim(signer: Option<&DkimSigner>, name_servers: &NameServers) -> Option<Finding> {
    let signer = signer?;
    let name = signer.record_name();
    let error = match timeout(PROBE_TIMEOUT, name_servers.txt_records(&name)).await {
        Ok(Ok(texts)) => {
            return Some(match problem(&name, signer.record().compare(&texts)) {
                Some(problem) => Finding::note(DKIM, problem),
                None => match signer.record().kind {
                    KeyKind::Rsa => Finding::ok(DKIM, format!("{name} has the public key of `dkim_key`")),
                    KeyKind::Ed25519 => Finding::note(
                        DKIM,
                        format!(
                            "{name} has the public key of `dkim_key`. But it is an Ed25519 key, which some large receivers do \
                             not verify: to them, mail is not signed. `porchlight mail key` makes an RSA key."
                        ),
                    ),
                },
            });
        }
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => "no name server responded in time".to_owned(),
    };
    Some(Finding::note(DKIM, format!("The DNS lookup of {name} failed: {error}. It needs {PRINTED}.")))
}

fn problem(name: &str, published: Published) -> Option<String> {
    match published {
        Published::Same => None,
        Published::Missing => {
            Some(format!("{name} does not exist in DNS, so receivers cannot verify mail: add {PRINTED}."))
        }
        Published::Other => Some(format!(
            "{name} does not have the public key of `dkim_key`, so receivers find the signature of all mail invalid: \
             replace it by {PRINTED}."
        )),
        Published::Revoked => Some(format!(
            "{name} says that the key is revoked (`p=` is empty), so receivers find the signature of all mail invalid: \
             replace it by {PRINTED}, or make a new key with `porchlight mail key`."
        )),
        Published::Several(count) => Some(format!(
            "{name} has {count} TXT records, and it is undefined which one receivers take: keep only {PRINTED}."
        )),
        Published::SameAsTest => {
            Some(format!("{name} has the flag `t=y`, so receivers may ignore signatures: remove `y` from `t=`."))
        }
    }
}

const UNKNOWN_DKIM: &str = "DKIM cannot be checked from here";

/// The records of the domain that mail is sent from.
struct Records<'a> {
    domain: &'a str,
    spf: Vec<String>,
    dmarc: Option<Dmarc<'a>>,
    mx_status: MxStatus,
    /// Whether this program signs mail itself.
    signs: bool,
}

struct Dmarc<'a> {
    /// The domain that has the records, which may be a parent of the sender's.
    owner: &'a str,
    count: usize,
}

async fn check_sender(mail: &MailSettings, name_servers: &NameServers) -> Finding {
    let domain = mail.from.email().domain();
    let error = match timeout(PROBE_TIMEOUT, Records::lookup(domain, mail.dkim.is_some(), name_servers)).await {
        Ok(Ok(records)) => return records.finding(),
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => "no name server responded in time".to_owned(),
    };
    Finding::note(SENDER, format!("The DNS lookup failed: {error}. {domain} needs SPF, DMARC and DKIM: docs/mail.md."))
}

impl<'a> Records<'a> {
    async fn lookup(domain: &'a str, signs: bool, name_servers: &NameServers) -> Result<Self, DnsFailure> {
        let (texts, dmarc, mx_status) = tokio::try_join!(
            name_servers.txt_records(domain),
            Dmarc::lookup(domain, name_servers),
            name_servers.mx_status(domain)
        )?;
        let spf = texts.into_iter().filter(|text| is_spf(text)).collect();
        Ok(Self { domain, spf, dmarc, mx_status, signs })
    }

    fn finding(&self) -> Finding {
        let domain = self.domain;
        if self.mx_status == MxStatus::NoSuchDomain {
            let detail = format!("{domain} does not exist in DNS, so receivers reject its mail. Check `mail_from`.");
            return Finding::note(SENDER, detail);
        }
        let problems: Vec<_> =
            [self.spf_problem(), self.dmarc_problem(), self.reply_problem()].into_iter().flatten().collect();
        if problems.is_empty() {
            let parent = self.dmarc.as_ref().map(|dmarc| dmarc.owner).filter(|owner| *owner != domain);
            let of_parent = parent.map(|owner| format!(" (of {owner})")).unwrap_or_default();
            let dkim = if self.signs { String::new() } else { format!("; {UNKNOWN_DKIM}") };
            return Finding::ok(SENDER, format!("{domain} has SPF, DMARC{of_parent} and accepts replies{dkim}"));
        }
        let dkim = if self.signs { String::new() } else { format!(" {UNKNOWN_DKIM}.") };
        Finding::note(SENDER, problems.join(" ") + &dkim)
    }

    fn spf_problem(&self) -> Option<String> {
        let domain = self.domain;
        match self.spf.as_slice() {
            [] => Some(format!(
                "{domain} has no SPF: add a TXT record such as \"v=spf1 include:spf.provider.example ~all\" with the \
                 value that your mail provider documents."
            )),
            [record] if record.split_whitespace().skip(1).eq(["-all"]) => {
                Some(format!("SPF of {domain} allows no server to send (\"v=spf1 -all\"): add your mail server to it."))
            }
            [_] => None,
            several => Some(format!(
                "{domain} has {} SPF records, which receivers treat as an error: merge them into one.",
                several.len()
            )),
        }
    }

    fn dmarc_problem(&self) -> Option<String> {
        match &self.dmarc {
            None => Some(format!(
                "{0} has no DMARC: add a TXT record such as \"v=DMARC1; p=none\" at _dmarc.{0}.",
                self.domain
            )),
            Some(Dmarc { count: 1, .. }) => None,
            Some(Dmarc { owner, count }) => {
                Some(format!("_dmarc.{owner} has {count} DMARC records, so receivers ignore all of them: keep one."))
            }
        }
    }

    fn reply_problem(&self) -> Option<String> {
        let domain = self.domain;
        match self.mx_status {
            MxStatus::Deliverable | MxStatus::NoSuchDomain => None,
            MxStatus::Missing => Some(format!(
                "Replies and bounces cannot be delivered: add an MX record such as \"10 mx.provider.example\" at {domain}."
            )),
            MxStatus::NullMx => {
                Some(format!("Replies and bounces cannot be delivered: the MX record of {domain} rejects all mail."))
            }
        }
    }
}

impl<'a> Dmarc<'a> {
    /// Queries the domain, then its parents that have at least two labels, until one has DMARC records.
    async fn lookup(domain: &'a str, name_servers: &NameServers) -> Result<Option<Self>, DnsFailure> {
        let mut owner = domain;
        while owner.contains('.') {
            let texts = name_servers.txt_records(&format!("_dmarc.{owner}")).await?;
            let count = texts.iter().filter(|text| is_dmarc(text)).count();
            if count > 0 {
                return Ok(Some(Self { owner, count }));
            }
            owner = owner.split_once('.').map_or("", |(_, parent)| parent);
        }
        Ok(None)
    }
}

/// RFC 7208, section 4.5: the version, followed by a space or the end.
fn is_spf(text: &str) -> bool {
    text.split(' ').next().is_some_and(|version| version.eq_ignore_ascii_case("v=spf1"))
}

/// RFC 7489, section 6.3: the version comes first, in upper case.
fn is_dmarc(text: &str) -> bool {
    let version = text.split(';').next().and_then(|version| version.split_once('='));
    version.is_some_and(|(name, value)| name.trim().eq_ignore_ascii_case("v") && value.trim() == "DMARC1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_recognized_by_their_version() {
        for text in ["v=spf1", "v=spf1 -all", "V=SPF1 include:a.example ~all"] {
            assert!(is_spf(text), "{text}");
        }
        for text in ["", "v=spf10 -all", " v=spf1", "spf2.0/pra", "v=spf1;", "x v=spf1 -all"] {
            assert!(!is_spf(text), "{text}");
        }
        for text in ["v=DMARC1", "v=DMARC1; p=none", "v = DMARC1 ;p=reject"] {
            assert!(is_dmarc(text), "{text}");
        }
        for text in ["", "v=dmarc1; p=none", "p=none; v=DMARC1", "v=DMARC10; p=none", "v=spf1 -all"] {
            assert!(!is_dmarc(text), "{text}");
        }
    }
}

//! Checks whether mail can be sent, and whether receivers accept it: the DNS records of the sender's domain, and the public
//! key that verifies signatures. If the mail server signs, only it knows the name of the record with its key.

use std::time::Duration;

use tokio::time::timeout;

use super::finding::{Finding, PROBE_TIMEOUT, failed, note, ok};
use crate::actions::MAIL_STEP;
use crate::config::{InvalidSettings, MailSettings, Settings};
use crate::domain::mail::{KeyKind, RecordStatus, Security};
use crate::mail::{DkimSigner, MailAddress, Mailer};
use crate::probe::{DnsFailure, MxStatus, NameServers};

/// How long connecting to the mail server and logging in may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the findings with their names.
pub(super) async fn check_mail(
    settings: &Settings,
    name_servers: &NameServers,
) -> Vec<(&'static str, Option<Finding>)> {
    let Some(mail) = &settings.mail else {
        return vec![("mail", Some(note(MAIL_STEP)))];
    };
    let mailer = match Mailer::from_settings(mail) {
        Ok(mailer) => mailer,
        Err(error) => {
            let sender = check_sender(mail, name_servers).await;
            return vec![("mail", Some(failed(error))), ("sender", Some(sender))];
        }
    };
    let (server, sender, dkim) = tokio::join!(
        check_mail_server(mail, &mailer),
        check_sender(mail, name_servers),
        check_dkim(mailer.dkim(), name_servers)
    );
    let kept =
        settings.keep_messages.map(|keep| ok(format!("deleted {keep} after they were forwarded (`keep_messages`)")));
    vec![("mail", Some(server)), ("sender", Some(sender)), ("dkim", dkim), ("messages", kept)]
}

/// Connects and logs in, without sending anything.
async fn check_mail_server(mail: &MailSettings, mailer: &Mailer) -> Finding {
    if let Err(error) = MailAddress::from_mailbox(&mail.contact_to) {
        return failed(InvalidSettings::new("contact_to", error));
    }
    let connected = timeout(CONNECT_TIMEOUT, mailer.connect()).await;
    let connected = connected.map_err(|_| "it did not respond in time".to_owned());
    match connected.and_then(|connected| connected.map_err(|failure| failure.detail().to_owned())) {
        Ok(connection) => connection.close().await,
        Err(error) => return failed(format!("{} cannot be used: {error}. Check `smtp_url`.", mail.relay)),
    }
    let login = if mail.relay.login().is_some() { "the login works" } else { "no login is set" };
    let detail = format!("{} accepts connections, {}; {login}", mail.relay, mail.relay.security_in_words());
    if mail.relay.security() == Security::Off && !mail.relay.is_trusted_local() {
        return note(format!(
            "{detail}. Anyone on the network path can read all mail. Remove `?tls=off` if the server offers TLS."
        ));
    }
    ok(detail)
}

/// Waits for a DNS lookup, at most for [`PROBE_TIMEOUT`].
async fn looked_up<T>(lookup: impl Future<Output = Result<T, DnsFailure>>) -> Result<T, String> {
    match timeout(PROBE_TIMEOUT, lookup).await {
        Ok(found) => found.map_err(|failure| failure.to_string()),
        Err(_) => Err("no name server responded in time".to_owned()),
    }
}

const PRINTED: &str = "the TXT record that `porchlight mail record` prints";

/// Returns `None` if mail is not signed here.
async fn check_dkim(signer: Option<&DkimSigner>, name_servers: &NameServers) -> Option<Finding> {
    let signer = signer?;
    let name = signer.record_name();
    Some(match looked_up(name_servers.txt_records(&name)).await {
        Err(error) => note(format!("The DNS lookup of {name} failed: {error}. It needs {PRINTED}.")),
        Ok(texts) => match (problem(&name, signer.record().compare(&texts)), signer.record().kind) {
            (Some(problem), _) => note(problem),
            (None, KeyKind::Rsa) => ok(format!("{name} has the public key of `dkim_key`")),
            (None, KeyKind::Ed25519) => note(format!(
                "{name} has the public key of `dkim_key`. But it is an Ed25519 key, which some large receivers do not verify: \
                 to them, mail is not signed. `porchlight mail key` makes an RSA key."
            )),
        },
    })
}

fn problem(name: &str, published: RecordStatus) -> Option<String> {
    Some(match published {
        RecordStatus::Same => return None,
        RecordStatus::Missing => {
            format!("{name} does not exist in DNS, so receivers cannot verify mail: add {PRINTED}.")
        }
        RecordStatus::Other => format!(
            "{name} does not have the public key of `dkim_key`, so receivers find the signature of all mail invalid: \
             replace it by {PRINTED}."
        ),
        RecordStatus::Revoked => format!(
            "{name} says that the key is revoked (`p=` is empty), so receivers find the signature of all mail invalid: \
             replace it by {PRINTED}, or make a new key with `porchlight mail key`."
        ),
        RecordStatus::Several(count) => format!(
            "{name} has {count} TXT records, and it is undefined which one receivers take: keep only {PRINTED}."
        ),
        RecordStatus::SameAsTest => {
            format!("{name} has the flag `t=y`, so receivers may ignore signatures: remove `y` from `t=`.")
        }
    })
}

const UNKNOWN_DKIM: &str = "DKIM cannot be checked from here";

async fn check_sender(mail: &MailSettings, name_servers: &NameServers) -> Finding {
    let domain = mail.from.email().domain();
    let lookup = async {
        tokio::try_join!(
            name_servers.txt_records(domain),
            dmarc_records(domain, name_servers),
            name_servers.mx_status(domain)
        )
    };
    let (texts, dmarc, mx_status) = match looked_up(lookup).await {
        Ok(records) => records,
        Err(error) => {
            let needs = format!("{domain} needs SPF, DMARC and DKIM: docs/mail.md.");
            return note(format!("The DNS lookup failed: {error}. {needs}"));
        }
    };
    if mx_status == MxStatus::NoSuchDomain {
        return note(format!("{domain} does not exist in DNS, so receivers reject its mail. Check `mail_from`."));
    }
    let problems = [spf_problem(domain, &texts), dmarc_problem(domain, dmarc), reply_problem(domain, mx_status)];
    let problems: Vec<_> = problems.into_iter().flatten().collect();
    // Whether a mail server signs, only it knows.
    let is_unsigned = mail.dkim.is_none();
    if problems.is_empty() {
        let parent = dmarc.map(|(owner, _)| owner).filter(|owner| *owner != domain);
        let of_parent = parent.map(|owner| format!(" (of {owner})")).unwrap_or_default();
        let dkim = if is_unsigned { format!("; {UNKNOWN_DKIM}") } else { String::new() };
        return ok(format!("{domain} has SPF, DMARC{of_parent} and accepts replies{dkim}"));
    }
    let dkim = if is_unsigned { format!(" {UNKNOWN_DKIM}.") } else { String::new() };
    note(problems.join(" ") + &dkim)
}

fn spf_problem(domain: &str, texts: &[String]) -> Option<String> {
    let records: Vec<_> = texts.iter().filter(|text| is_spf(text)).collect();
    match records.as_slice() {
        [] => Some(format!(
            "{domain} has no SPF: add a TXT record such as \"v=spf1 include:spf.provider.example ~all\" with the value that \
             your mail provider documents."
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

fn dmarc_problem(domain: &str, records: Option<(&str, usize)>) -> Option<String> {
    match records {
        None => {
            Some(format!("{domain} has no DMARC: add a TXT record such as \"v=DMARC1; p=none\" at _dmarc.{domain}."))
        }
        Some((_, 1)) => None,
        Some((owner, count)) => {
            Some(format!("_dmarc.{owner} has {count} DMARC records, so receivers ignore all of them: keep one."))
        }
    }
}

fn reply_problem(domain: &str, mx_status: MxStatus) -> Option<String> {
    match mx_status {
        MxStatus::Deliverable | MxStatus::NoSuchDomain => None,
        MxStatus::Missing => Some(format!(
            "Replies and bounces cannot be delivered: add an MX record such as \"10 mx.provider.example\" at {domain}."
        )),
        MxStatus::NullMx => {
            Some(format!("Replies and bounces cannot be delivered: the MX record of {domain} rejects all mail."))
        }
    }
}

/// Queries the domain, then its parents that have at least two labels, until one has DMARC records. Returns that one, and
/// the number of its records.
async fn dmarc_records<'a>(
    domain: &'a str,
    name_servers: &NameServers,
) -> Result<Option<(&'a str, usize)>, DnsFailure> {
    let mut owner = domain;
    while owner.contains('.') {
        let texts = name_servers.txt_records(&format!("_dmarc.{owner}")).await?;
        let count = texts.iter().filter(|text| is_dmarc(text)).count();
        if count > 0 {
            return Ok(Some((owner, count)));
        }
        owner = owner.split_once('.').map_or("", |(_, parent)| parent);
    }
    Ok(None)
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

//! Checks the DNS records by which receivers judge mail from the sender's domain.
//!
//! DKIM has a check of its own, unless the mail server signs: then only that server knows the name of its record.

use tokio::time::timeout;

use super::PROBE_TIMEOUT;
use super::finding::Finding;
use crate::config::MailSettings;
use crate::probe::{DnsFailure, MxStatus, NameServers};

const NAME: &str = "sender";
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

pub(super) async fn check_sender(mail: &MailSettings, name_servers: &NameServers) -> Finding {
    let domain = mail.from.email().domain();
    let error = match timeout(PROBE_TIMEOUT, Records::lookup(domain, mail.dkim.is_some(), name_servers)).await {
        Ok(Ok(records)) => return records.finding(),
        Ok(Err(failure)) => failure.to_string(),
        Err(_) => "no name server responded in time".to_owned(),
    };
    Finding::note(NAME, format!("The DNS lookup failed: {error}. {domain} needs SPF, DMARC and DKIM: docs/mail.md."))
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
            return Finding::note(NAME, detail);
        }
        let problems: Vec<_> =
            [self.spf_problem(), self.dmarc_problem(), self.reply_problem()].into_iter().flatten().collect();
        if problems.is_empty() {
            let parent = self.dmarc.as_ref().map(|dmarc| dmarc.owner).filter(|owner| *owner != domain);
            let of_parent = parent.map(|owner| format!(" (of {owner})")).unwrap_or_default();
            let dkim = if self.signs { String::new() } else { format!("; {UNKNOWN_DKIM}") };
            return Finding::ok(NAME, format!("{domain} has SPF, DMARC{of_parent} and accepts replies{dkim}"));
        }
        let dkim = if self.signs { String::new() } else { format!(" {UNKNOWN_DKIM}.") };
        Finding::note(NAME, problems.join(" ") + &dkim)
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

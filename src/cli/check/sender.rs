//! Whether mail from us looks genuine to those who receive it: what DNS says of the sender's domain.
//!
//! DKIM is left out: its record has a name that only the mail server knows.

use tokio::time::timeout;

use super::WORLD_WITHIN;
use super::finding::Finding;
use crate::config::MailSettings;
use crate::probe::{DnsFailure, MailRoute, NameServers};

const NAME: &str = "sender";
const DKIM: &str = "DKIM cannot be seen from here";

/// What DNS says of a domain that mail comes from.
struct Records<'a> {
    domain: &'a str,
    spf: Vec<String>,
    dmarc: Option<Dmarc<'a>>,
    way_back: MailRoute,
}

struct Dmarc<'a> {
    /// Who says it: the domain, or one above it.
    owner: &'a str,
    count: usize,
}

pub(super) async fn about_sender(mail: &MailSettings, name_servers: &NameServers) -> Finding {
    let domain = mail.from.email().domain();
    let why = match timeout(WORLD_WITHIN, Records::ask(domain, name_servers)).await {
        Ok(Ok(records)) => return records.finding(),
        Ok(Err(unasked)) => unasked.to_string(),
        Err(_) => "nobody answers in time".to_owned(),
    };
    Finding::note(NAME, format!("DNS could not be asked: {why}. {domain} needs SPF, DMARC and DKIM: docs/mail.md."))
}

impl<'a> Records<'a> {
    async fn ask(domain: &'a str, name_servers: &NameServers) -> Result<Self, DnsFailure> {
        let (texts, dmarc, way_back) = tokio::try_join!(
            name_servers.texts(domain),
            Dmarc::ask(domain, name_servers),
            name_servers.way_for_mail(domain)
        )?;
        Ok(Self { domain, spf: texts.into_iter().filter(|text| is_spf(text)).collect(), dmarc, way_back })
    }

    fn finding(&self) -> Finding {
        let domain = self.domain;
        if self.way_back == MailRoute::NoSuchDomain {
            let words = format!("DNS knows no {domain}, so mail from there is refused. Check `mail_from`.");
            return Finding::note(NAME, words);
        }
        let missing: Vec<_> =
            [self.about_spf(), self.about_dmarc(), self.about_way_back()].into_iter().flatten().collect();
        if missing.is_empty() {
            let elsewhere = self.dmarc.as_ref().map(|dmarc| dmarc.owner).filter(|owner| *owner != domain);
            let whose = elsewhere.map(|owner| format!(" (of {owner})")).unwrap_or_default();
            return Finding::good(NAME, format!("{domain} has SPF, DMARC{whose} and a place for replies; {DKIM}"));
        }
        Finding::note(NAME, format!("{} {DKIM}.", missing.join(" ")))
    }

    fn about_spf(&self) -> Option<String> {
        let domain = self.domain;
        match self.spf.as_slice() {
            [] => Some(format!(
                "{domain} has no SPF: add TXT such as \"v=spf1 include:spf.provider.example ~all\" with what your mail \
                 provider names."
            )),
            [record] if record.split_whitespace().skip(1).eq(["-all"]) => {
                Some(format!("SPF of {domain} lets nobody send (\"v=spf1 -all\"): name your mail server in it."))
            }
            [_] => None,
            several => Some(format!(
                "{domain} has {} SPF records, which receivers take for a mistake: make them one.",
                several.len()
            )),
        }
    }

    fn about_dmarc(&self) -> Option<String> {
        match &self.dmarc {
            None => Some(format!("{0} has no DMARC: add TXT such as \"v=DMARC1; p=none\" at _dmarc.{0}.", self.domain)),
            Some(Dmarc { count: 1, .. }) => None,
            Some(Dmarc { owner, count }) => {
                Some(format!("_dmarc.{owner} has {count} DMARC records, so that none counts: leave one."))
            }
        }
    }

    fn about_way_back(&self) -> Option<String> {
        let domain = self.domain;
        match self.way_back {
            MailRoute::Open | MailRoute::NoSuchDomain => None,
            MailRoute::Missing => Some(format!(
                "Replies and bounces have nowhere to go: add MX such as \"10 mx.provider.example\" at {domain}."
            )),
            MailRoute::Closed => {
                Some(format!("Replies and bounces have nowhere to go: the MX of {domain} says that it takes no mail."))
            }
        }
    }
}

impl<'a> Dmarc<'a> {
    /// Asks the domain and those above it, up to the last that has two labels, until one has something to say.
    async fn ask(domain: &'a str, name_servers: &NameServers) -> Result<Option<Self>, DnsFailure> {
        let mut owner = domain;
        while owner.contains('.') {
            let texts = name_servers.texts(&format!("_dmarc.{owner}")).await?;
            let count = texts.iter().filter(|text| is_dmarc(text)).count();
            if count > 0 {
                return Ok(Some(Self { owner, count }));
            }
            owner = owner.split_once('.').map_or("", |(_, above)| above);
        }
        Ok(None)
    }
}

/// RFC 7208, 4.5: the version, and then a space or nothing.
fn is_spf(text: &str) -> bool {
    text.split(' ').next().is_some_and(|version| version.eq_ignore_ascii_case("v=spf1"))
}

/// RFC 7489, 6.3: the version comes first, in capitals.
fn is_dmarc(text: &str) -> bool {
    let version = text.split(';').next().and_then(|version| version.split_once('='));
    version.is_some_and(|(name, value)| name.trim().eq_ignore_ascii_case("v") && value.trim() == "DMARC1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_told_by_its_version() {
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

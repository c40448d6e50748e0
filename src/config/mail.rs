//! What sending mail takes.

use super::InvalidSettings;
use crate::domain::mailbox::Mailbox;
use crate::domain::relay::Relay;

/// What sending mail takes: all of it, or nothing.
#[derive(Clone, Debug)]
pub struct MailSettings {
    pub relay: Relay,
    pub from: Mailbox,
    pub contact_to: Mailbox,
}

impl MailSettings {
    pub(super) fn parse(mut take: impl FnMut(&str) -> Option<String>) -> Result<Option<Self>, InvalidSettings> {
        let relay = take("smtp_url")
            .map(|text| Relay::parse(&text).map_err(|why| InvalidSettings::of("smtp_url", why)))
            .transpose()?;
        let mut mailbox = |name| {
            take(name).map(|text| Mailbox::parse(&text).map_err(|why| InvalidSettings::of(name, why))).transpose()
        };
        let (from, contact_to) = (mailbox("mail_from")?, mailbox("contact_to")?);
        let Some(relay) = relay else { return Ok(None) };
        let missing = |name| move || InvalidSettings::of(name, "it is missing, and `smtp_url` is set");
        Ok(Some(Self {
            relay,
            from: from.ok_or_else(missing("mail_from"))?,
            contact_to: contact_to.ok_or_else(missing("contact_to"))?,
        }))
    }
}

//! Settings for sending mail.

use super::InvalidSettings;
use crate::domain::mailbox::Mailbox;
use crate::domain::relay::Relay;

/// Settings for sending mail. All three are required together.
#[derive(Clone, Debug)]
pub struct MailSettings {
    pub relay: Relay,
    pub from: Mailbox,
    pub contact_to: Mailbox,
}

impl MailSettings {
    pub(super) fn parse(mut text_of: impl FnMut(&str) -> Option<String>) -> Result<Option<Self>, InvalidSettings> {
        let relay = text_of("smtp_url")
            .map(|text| Relay::parse(&text).map_err(|error| InvalidSettings::new("smtp_url", error)))
            .transpose()?;
        let mut mailbox = |name| {
            text_of(name)
                .map(|text| Mailbox::parse(&text).map_err(|error| InvalidSettings::new(name, error)))
                .transpose()
        };
        let (from, contact_to) = (mailbox("mail_from")?, mailbox("contact_to")?);
        let Some(relay) = relay else { return Ok(None) };
        let missing = |name| move || InvalidSettings::new(name, "it is missing, but `smtp_url` needs it");
        Ok(Some(Self {
            relay,
            from: from.ok_or_else(missing("mail_from"))?,
            contact_to: contact_to.ok_or_else(missing("contact_to"))?,
        }))
    }
}

//! Settings for sending mail.

use std::path::PathBuf;

use super::InvalidSettings;
use crate::domain::bounce::BounceAddress;
use crate::domain::dkim::DkimSelector;
use crate::domain::mailbox::Mailbox;
use crate::domain::relay::Relay;

/// Settings for sending mail. The first three are required together.
#[derive(Clone, Debug)]
pub struct MailSettings {
    pub relay: Relay,
    pub from: Mailbox,
    pub contact_to: Mailbox,
    /// Where undeliverable letters are returned to. `None`: to the sender.
    pub bounce_address: Option<BounceAddress>,
    /// `None`: mail is not signed.
    pub dkim: Option<DkimSettings>,
}

/// The key that signs all mail.
#[derive(Clone, Debug)]
pub struct DkimSettings {
    pub selector: DkimSelector,
    pub key: PathBuf,
}

impl MailSettings {
    pub(super) fn parse(
        mut text_of: impl FnMut(&str) -> Option<String>,
        confirm_updates: bool,
    ) -> Result<Option<Self>, InvalidSettings> {
        let relay = text_of("smtp_url")
            .map(|text| Relay::parse(&text).map_err(|error| InvalidSettings::new("smtp_url", error)))
            .transpose()?;
        let mut mailbox = |name| {
            text_of(name)
                .map(|text| Mailbox::parse(&text).map_err(|error| InvalidSettings::new(name, error)))
                .transpose()
        };
        let (from, contact_to) = (mailbox("mail_from")?, mailbox("contact_to")?);
        let bounce_address = text_of("bounce_address")
            .map(|text| BounceAddress::parse(&text).map_err(|error| InvalidSettings::new("bounce_address", error)))
            .transpose()?;
        let dkim = DkimSettings::parse(text_of)?;
        let Some(relay) = relay else {
            return if confirm_updates { Err(missing("smtp_url", "confirm_updates")()) } else { Ok(None) };
        };
        Ok(Some(Self {
            relay,
            from: from.ok_or_else(missing("mail_from", "smtp_url"))?,
            contact_to: contact_to.ok_or_else(missing("contact_to", "smtp_url"))?,
            bounce_address,
            dkim,
        }))
    }
}

impl DkimSettings {
    fn parse(mut text_of: impl FnMut(&str) -> Option<String>) -> Result<Option<Self>, InvalidSettings> {
        let selector = text_of("dkim_selector")
            .map(|text| DkimSelector::parse(&text).map_err(|error| InvalidSettings::new("dkim_selector", error)))
            .transpose()?;
        match (selector, text_of("dkim_key")) {
            (None, None) => Ok(None),
            (Some(selector), Some(key)) => Ok(Some(Self { selector, key: key.into() })),
            (None, Some(_)) => Err(missing("dkim_selector", "dkim_key")()),
            (Some(_), None) => Err(missing("dkim_key", "dkim_selector")()),
        }
    }
}

/// The error of a setting that another one needs.
fn missing(name: &'static str, needed_by: &'static str) -> impl FnOnce() -> InvalidSettings {
    move || InvalidSettings::new(name, format!("it is missing, but `{needed_by}` needs it"))
}

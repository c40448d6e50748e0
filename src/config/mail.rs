//! Settings for sending mail.

use std::path::PathBuf;

use super::text::{InvalidSettings, Texts, both, missing};
use crate::domain::letters::BounceAddress;
use crate::domain::mail::{DkimSelector, Mailbox, Relay};

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
    pub(super) fn parse(texts: &mut Texts, confirm_updates: bool) -> Result<Option<Self>, InvalidSettings> {
        let relay = texts.parse("smtp_url", Relay::parse)?;
        let from = texts.parse("mail_from", Mailbox::parse)?;
        let contact_to = texts.parse("contact_to", Mailbox::parse)?;
        let bounce_address = texts.parse("bounce_address", BounceAddress::parse)?;
        let selector = texts.parse("dkim_selector", DkimSelector::parse)?;
        let dkim = both(("dkim_selector", selector), ("dkim_key", texts.take("dkim_key")))?;
        let Some(relay) = relay else {
            return if confirm_updates { Err(missing("smtp_url", "confirm_updates")) } else { Ok(None) };
        };
        Ok(Some(Self {
            relay,
            from: from.ok_or_else(|| missing("mail_from", "smtp_url"))?,
            contact_to: contact_to.ok_or_else(|| missing("contact_to", "smtp_url"))?,
            bounce_address,
            dkim: dkim.map(|(selector, key)| DkimSettings { selector, key: key.into() }),
        }))
    }
}

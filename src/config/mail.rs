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
    /// Where links to sign in to the desk are mailed. `None`: nowhere.
    pub desk_email: Option<Mailbox>,
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
        let desk_email = texts.parse("desk_email", Mailbox::parse)?;
        let Some(relay) = relay else {
            let needing = [("confirm_updates", confirm_updates), ("desk_email", desk_email.is_some())];
            let needing = needing.into_iter().find(|(_, needs_it)| *needs_it);
            return needing.map_or(Ok(None), |(name, _)| Err(missing("smtp_url", name)));
        };
        Ok(Some(Self {
            relay,
            from: from.ok_or_else(|| missing("mail_from", "smtp_url"))?,
            contact_to: contact_to.ok_or_else(|| missing("contact_to", "smtp_url"))?,
            bounce_address,
            desk_email,
            dkim: dkim.map(|(selector, key)| DkimSettings { selector, key: key.into() }),
        }))
    }
}

//! The letter in a file, and what its copies are made with.

use std::path::Path;

use crate::cli::failure::{Failure, OrFail};
use crate::config::{InvalidSettings, Settings};
use crate::domain::letters::Letter;
use crate::mail::{MailAddress, Mailer};
use crate::site::{Content, MailTemplates};

pub(super) fn read(file: &Path) -> Result<Letter, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
    let letter = text.and_then(|text| Letter::parse(&text).map_err(|error| error.to_string()));
    letter.or_fail(|why| format!("The letter in {} cannot be sent: {why}.", file.display()))
}

pub(super) fn mail_templates(settings: &Settings, postal_address: &str) -> Result<MailTemplates, Failure> {
    let content = Content::from_settings(settings)?;
    Ok(MailTemplates::read(&content, settings.public_url(), Some(postal_address))?)
}

/// Returns what all copies of a letter that is sent are made with, and the address of the makers.
pub(super) fn mailer_and_templates(settings: &Settings) -> Result<(Mailer, MailTemplates, MailAddress), Failure> {
    let missing = |name, reason: &str| InvalidSettings::new(name, reason);
    let postal_address = settings
        .postal_address
        .as_deref()
        .ok_or_else(|| missing("postal_address", "it is not set, and every letter must include it"))?;
    let mail = settings.mail.as_ref().ok_or_else(|| missing("smtp_url", "it is not set, and letters need it"))?;
    let contact_to =
        MailAddress::from_mailbox(&mail.contact_to).map_err(|why| InvalidSettings::new("contact_to", why))?;
    Ok((Mailer::from_settings(mail)?, mail_templates(settings, postal_address)?, contact_to))
}

/// Refuses a `base_url` whose unsubscribe links would not work for the recipients.
pub(super) fn require_public_base_url(settings: &Settings) -> Result<(), InvalidSettings> {
    let base_url = settings.public_url();
    let problem = match (base_url.is_loopback(), base_url.is_https()) {
        (true, _) => "leads to this machine",
        (false, false) => "is not https",
        (false, true) => return Ok(()),
    };
    Err(InvalidSettings::new(
        "base_url",
        format!(
            "{base_url} {problem}, and the unsubscribe links of the letter start with it; set the public https URL"
        ),
    ))
}

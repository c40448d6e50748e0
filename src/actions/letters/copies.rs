//! Copies of a letter that no recipient gets: what stands in a preview, and the test copy.

use super::send::{compose_copy, new_bounce_tag};
use crate::config::{InvalidSettings, MailSettings, Settings};
use crate::domain::letters::{Letter, TEST_COPY_TOKEN, UNSUBSCRIBE_PATH};
use crate::domain::mail::EmailAddress;
use crate::domain::network::BaseUrl;
use crate::domain::time::Timestamp;
use crate::mail::{Mailer, UnsupportedAddress};
use crate::site::{MailRecipient, MailTemplates, RenderedMail, SiteFailure};

/// Returns what every letter is sent with, or which setting is missing.
pub fn letter_settings(settings: &Settings) -> Result<(&MailSettings, &str), InvalidSettings> {
    let missing = |name, reason: &str| InvalidSettings::new(name, reason);
    let postal_address = settings.postal_address.as_deref();
    let postal_address =
        postal_address.ok_or_else(|| missing("postal_address", "it is not set, and every letter must include it"))?;
    let mail = settings.mail.as_ref().ok_or_else(|| missing("smtp_url", "it is not set, and letters need it"))?;
    Ok((mail, postal_address))
}

/// Returns what stands in a copy that no recipient gets.
pub fn placeholder(base_url: &BaseUrl, now: Timestamp) -> MailRecipient {
    MailRecipient {
        opted_in: now.date(),
        through: "the site",
        url: base_url.to(&format!("{UNSUBSCRIBE_PATH}{TEST_COPY_TOKEN}")),
    }
}

/// Renders a copy that no recipient gets, unless the letter is too long.
pub fn render_sample(
    templates: &MailTemplates,
    letter: &Letter,
    base_url: &BaseUrl,
    is_archived: bool,
    now: Timestamp,
) -> Result<RenderedMail, SiteFailure> {
    let rendered = templates.letter(letter, &placeholder(base_url, now), is_archived)?;
    rendered.check_size().map(|()| rendered)
}

/// Why a test copy was not sent.
#[derive(Debug, thiserror::Error)]
pub enum TestCopyFailure {
    #[error(transparent)]
    Site(#[from] SiteFailure),
    #[error("The test copy was not sent: {0}.")]
    NotSent(String),
}

/// Sends a copy that nothing records.
pub async fn send_test_copy(
    mailer: &Mailer,
    templates: &MailTemplates,
    letter: &Letter,
    base_url: &BaseUrl,
    (to, is_archived): (&EmailAddress, bool),
    now: Timestamp,
) -> Result<(), TestCopyFailure> {
    let mut rendered = render_sample(templates, letter, base_url, is_archived, now)?;
    rendered.subject = format!("[Test] {}", letter.subject);
    let not_sent = |why: &dyn std::fmt::Display| TestCopyFailure::NotSent(why.to_string());
    // As a real copy has, but this one belongs to nobody.
    let tag = new_bounce_tag(mailer).map_err(|failure| not_sent(&failure))?;
    let mail = compose_copy(mailer, &rendered, to, &placeholder(base_url, now), tag.as_ref(), now);
    let mail = mail.ok_or_else(|| not_sent(&UnsupportedAddress))?;
    let mut connection = mailer.connect().await.map_err(|failure| not_sent(&failure.detail()))?;
    connection.send(&mail).await.map_err(|failure| not_sent(&failure.detail()))?;
    connection.close().await;
    Ok(())
}

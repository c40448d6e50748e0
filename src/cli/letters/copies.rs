//! Makes copies of a letter that no recipient gets: the files of a preview, and the test copy.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::letter_file::read;
use crate::actions::{TestCopyFailure, compose_copy, letter_settings, placeholder, render_sample, send_test_copy};
use crate::cli::failure::{Failure, OrFail};
use crate::cli::terminal::{eprint_line, print_line, sanitize_line};
use crate::clock::Clock;
use crate::config::{InvalidSettings, Settings};
use crate::domain::letters::Letter;
use crate::domain::mail::{EmailAddress, Mailbox, Relay};
use crate::mail::{MailAddress, Mailer};
use crate::site::{Content, MailTemplates, RenderedMail};

pub(super) fn mail_templates(settings: &Settings, postal_address: &str) -> Result<MailTemplates, Failure> {
    let content = Content::from_settings(settings)?;
    Ok(MailTemplates::read(&content, settings.public_url(), Some(postal_address))?)
}

/// Returns what all copies of a letter that is sent are made with, and the address of the makers.
pub(super) fn mailer_and_templates(settings: &Settings) -> Result<(Mailer, MailTemplates, MailAddress), Failure> {
    let (mail, postal_address) = letter_settings(settings)?;
    let contact_to =
        MailAddress::from_mailbox(&mail.contact_to).map_err(|why| InvalidSettings::new("contact_to", why))?;
    Ok((Mailer::from_settings(mail)?, mail_templates(settings, postal_address)?, contact_to))
}

/// The recipient of a preview, and its sender while no mail server is set.
const READER: &str = "reader@example.com";
const SENDER: &str = "sender@example.com";

/// Returns a mailer for mail that is never sent.
fn placeholder_mailer() -> Result<Mailer, InvalidSettings> {
    let relay = Relay::parse("smtp://localhost").map_err(|why| InvalidSettings::new("smtp_url", why))?;
    let from = Mailbox::parse(SENDER).map_err(|why| InvalidSettings::new("mail_from", why))?;
    Mailer::new(relay, &from).map_err(|why| InvalidSettings::new("mail_from", why))
}

pub(super) fn preview(settings: &Settings, file: &Path) -> Result<(), Failure> {
    let letter = read(file)?;
    let postal_address = settings.postal_address.as_deref().unwrap_or("(The setting `postal_address` goes here.)");
    let recipient = placeholder(&settings.public_url(), Clock::System.now());
    let rendered = mail_templates(settings, postal_address)?.letter(&letter, &recipient, settings.letters_archive)?;
    rendered.check_size()?;
    let mailer = match &settings.mail {
        Some(mail) => Mailer::from_settings(mail),
        None => placeholder_mailer(),
    }?;
    let reader = EmailAddress::from_stored(READER, READER);
    let mail = compose_copy(&mailer, &rendered, &reader, &recipient, None, Clock::System.now());
    let source = mail.map(|mail| mail.source()).unwrap_or_default();
    eprint_line(&format!("Subject: {}", letter.subject));
    let files = [
        ("preview.html", with_images(&rendered).into_bytes()),
        ("preview.txt", rendered.text.into_bytes()),
        ("preview.eml", source),
    ];
    for (extension, content) in files {
        let path = file.with_extension(extension);
        std::fs::write(&path, content)
            .or_fail(|error| format!("The preview cannot be written to {}: {error}.", path.display()))?;
        print_line(&path.display().to_string());
    }
    Ok(())
}

/// The HTML as a browser shows it, which cannot look for the images in a mail.
fn with_images(rendered: &RenderedMail) -> String {
    rendered
        .html_with_images(|image| format!("data:{};base64,{}", image.format.as_str(), STANDARD.encode(&image.bytes)))
}

/// Fails as `preview` does if the letter is too long, before anybody is asked.
pub(super) fn check_size(settings: &Settings, templates: &MailTemplates, letter: &Letter) -> Result<(), Failure> {
    let (base_url, now) = (settings.public_url(), Clock::System.now());
    Ok(render_sample(templates, letter, &base_url, settings.letters_archive, now).map(drop)?)
}

pub(super) async fn test(settings: &Settings, file: &Path, to: &EmailAddress) -> Result<(), Failure> {
    let letter = read(file)?;
    let (mailer, templates, _) = mailer_and_templates(settings)?;
    let to_archive = (to, settings.letters_archive);
    let now = Clock::System.now();
    send_test_copy(&mailer, &templates, &letter, &settings.public_url(), to_archive, now).await.map_err(|failure| {
        match failure {
            TestCopyFailure::Site(failure) => failure.into(),
            failure @ TestCopyFailure::NotSent(_) => Failure::new(sanitize_line(&failure.to_string())),
        }
    })?;
    eprint_line(&format!("A test copy was sent to {}.", to.as_typed()));
    Ok(())
}

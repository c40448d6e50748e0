//! Renders the mail that asks a person to confirm an opt-in, as HTML and as plain text.

use std::sync::Arc;

use serde_json::json;

use super::assets::Assets;
use super::templates::Templates;
use super::{Content, SiteFacts, SiteFailure};
use crate::domain::base_url::BaseUrl;
use crate::domain::limits::CONFIRMATION_PERIOD;

/// The site's templates `confirmation.html` and `confirmation.txt`.
#[derive(Debug)]
pub struct ConfirmationTemplate {
    facts: SiteFacts,
    templates: Templates,
    base_url: BaseUrl,
}

/// What differs between the mails. Nothing in it is text of a caller.
#[derive(Clone, Debug)]
pub struct ConfirmationRequest {
    /// The date of the opt-in, such as `2026-11-15`.
    pub requested: String,
    /// How the opt-in came, such as `the site`.
    pub through: &'static str,
    pub url: String,
}

/// The subject and both parts of the mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedConfirmation {
    pub subject: String,
    pub html: String,
    pub text: String,
}

impl ConfirmationTemplate {
    pub fn read(content: &Content, base_url: BaseUrl) -> Result<Self, SiteFailure> {
        let assets = Arc::new(Assets::read(content)?);
        Ok(Self { facts: SiteFacts::read(content)?, templates: Templates::read(content, &assets)?, base_url })
    }

    pub fn render(&self, request: &ConfirmationRequest) -> Result<RenderedConfirmation, SiteFailure> {
        let subject = format!("{}: one email a month?", self.facts.name);
        let context = json!({
            "app": self.facts,
            "base_url": self.base_url.as_str(),
            "subject": subject,
            "requested": request.requested,
            "through": request.through,
            "url": request.url,
            "days": CONFIRMATION_PERIOD.as_secs() / (24 * 60 * 60),
        });
        Ok(RenderedConfirmation {
            html: self.templates.render("confirmation.html", &context)?,
            text: self.templates.render("confirmation.txt", &context)?,
            subject,
        })
    }
}

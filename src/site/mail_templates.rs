//! Renders the mails that people get, as HTML and as plain text: the monthly letter, and the mail that asks a person to
//! confirm an opt-in.

use std::sync::Arc;

use serde_json::{Value, json};

use super::assets::Assets;
use super::markdown::{Document, markdown_to_html};
use super::templates::Templates;
use super::{Content, SiteFacts, SiteFailure};
use crate::domain::base_url::BaseUrl;
use crate::domain::letter::Letter;
use crate::domain::limits::CONFIRMATION_PERIOD;

/// What all mails are made with.
#[derive(Debug)]
struct MailTemplates {
    facts: SiteFacts,
    templates: Templates,
    base_url: BaseUrl,
}

impl MailTemplates {
    fn read(content: &Content, base_url: BaseUrl) -> Result<Self, SiteFailure> {
        let assets = Arc::new(Assets::read(content)?);
        Ok(Self { facts: SiteFacts::read(content)?, templates: Templates::read(content, &assets)?, base_url })
    }

    /// Returns the HTML and the text of a mail.
    fn render(&self, name: &str, mut context: Value) -> Result<(String, String), SiteFailure> {
        context["app"] = json!(self.facts);
        context["base_url"] = self.base_url.as_str().into();
        let render = |extension| self.templates.render(&format!("{name}.{extension}"), &context);
        Ok((render("html")?, render("txt")?))
    }
}

/// Renders the copies of a letter.
#[derive(Debug)]
pub struct LetterTemplate {
    mail: MailTemplates,
    postal_address: String,
}

/// What differs between the copies of a letter.
#[derive(Clone, Debug)]
pub struct LetterRecipient {
    /// The date of the opt-in, such as `2026-11-15`.
    pub opted_in: String,
    /// How the opt-in came, such as `the site`. Never text of a caller.
    pub through: &'static str,
    pub unsubscribe_url: String,
}

/// Both parts of a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedLetter {
    pub html: String,
    pub text: String,
}

impl LetterTemplate {
    pub fn read(content: &Content, base_url: BaseUrl, postal_address: &str) -> Result<Self, SiteFailure> {
        Ok(Self { mail: MailTemplates::read(content, base_url)?, postal_address: postal_address.to_owned() })
    }

    pub fn render(&self, letter: &Letter, to: &LetterRecipient) -> Result<RenderedLetter, SiteFailure> {
        let absolute = Document::parse(&letter.body).with_absolute_links(self.mail.base_url.as_str());
        let context = json!({
            "subject": letter.subject,
            "body_html": markdown_to_html(&absolute),
            "body_text": absolute.trim_end(),
            "postal_address": self.postal_address,
            "opted_in": to.opted_in,
            "through": to.through,
            "unsubscribe_url": to.unsubscribe_url,
        });
        let (html, text) = self.mail.render("letter", context)?;
        Ok(RenderedLetter { html, text })
    }
}

/// Renders the mail that asks to confirm an opt-in.
#[derive(Debug)]
pub struct ConfirmationTemplate(MailTemplates);

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
        MailTemplates::read(content, base_url).map(Self)
    }

    pub fn render(&self, request: &ConfirmationRequest) -> Result<RenderedConfirmation, SiteFailure> {
        let subject = format!("{}: one email a month?", self.0.facts.name);
        let context = json!({
            "subject": subject,
            "requested": request.requested,
            "through": request.through,
            "url": request.url,
            "days": CONFIRMATION_PERIOD.as_secs() / (24 * 60 * 60),
        });
        let (html, text) = self.0.render("confirmation", context)?;
        Ok(RenderedConfirmation { subject, html, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(markdown: &str) -> RenderedLetter {
        let base_url = BaseUrl::parse("https://troupe.example").unwrap();
        let letter_template = LetterTemplate::read(&Content::default(), base_url, "1 Lamp Street\nOldtown").unwrap();
        let to = LetterRecipient {
            opted_in: "2026-10-02".to_owned(),
            through: "the site",
            unsubscribe_url: "https://troupe.example/unsubscribe/TOKEN".to_owned(),
        };
        letter_template.render(&Letter::parse(markdown).unwrap(), &to).unwrap()
    }

    #[test]
    fn both_parts_have_the_text_and_the_unsubscribe_link() {
        let rendered = render("# What is new\n\n*Bots* answer sooner: [read on](/releases). <b>x</b>\n");
        assert!(rendered.html.contains("<em>Bots</em> answer sooner: <a href=\"https://troupe.example/releases\">"));
        assert!(rendered.text.contains("*Bots* answer sooner: [read on](https://troupe.example/releases)."));
        for part in [&rendered.html, &rendered.text] {
            for fact in
                ["1 Lamp Street", "Oldtown", "2026-10-02", "the site", "https://troupe.example/unsubscribe/TOKEN"]
            {
                assert!(part.contains(fact), "{fact}: {part}");
            }
        }
        assert!(!rendered.html.contains("<b>x</b>"));
    }

    #[test]
    fn nothing_in_a_letter_reveals_that_it_was_read() {
        let rendered = render("# What is new\n\n<img src=\"https://elsewhere.example/pixel.gif\">\n\nText\n");
        for tracker in ["<img", "<link", "<script", "url(", "@import", "pixel.gif"] {
            assert!(!rendered.html.contains(tracker), "{tracker}: {}", rendered.html);
        }
    }
}

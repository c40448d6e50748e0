//! Renders the mails that people get, as HTML and as plain text: the monthly letter, and the mail that asks a person to
//! confirm an opt-in.

use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};

use super::assets::{self, AssetLink};
use super::content::{Content, SiteFailure};
use super::facts::SiteFacts;
use super::language::{Words, fill};
use super::look::Look;
use super::markdown::RenderedLetter;
use super::templates::Templates;
use crate::domain::letters::{Letter, LetterImage, ListId, letter_path};
use crate::domain::limits::{CONFIRMATION_PERIOD, MAX_LETTER_HTML_BYTES};
use crate::domain::network::BaseUrl;

#[derive(Debug)]
pub struct MailTemplates {
    /// The variable `app` of the templates.
    app: Value,
    list_id: ListId,
    confirmation_subject: String,
    templates: Templates,
    base_url: BaseUrl,
    postal_address: String,
}

/// Those of the last build of the site that succeeded.
#[derive(Clone, Debug)]
pub struct CurrentMailTemplates(Arc<RwLock<Arc<MailTemplates>>>);

impl CurrentMailTemplates {
    pub fn new(templates: MailTemplates) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(templates))))
    }

    pub fn get(&self) -> Arc<MailTemplates> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn replace(&self, templates: MailTemplates) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(templates);
    }
}

/// What differs between the copies of a mail. Nothing in it is text of a caller.
#[derive(Clone, Debug)]
pub struct MailRecipient {
    /// The date of the opt-in, such as `2026-11-15`.
    pub opted_in: String,
    /// How the opt-in came, such as `the site`.
    pub through: &'static str,
    /// The page that unsubscribes, or that confirms the opt-in.
    pub url: String,
}

/// The subject and both parts of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedMail {
    pub subject: String,
    pub html: String,
    pub text: String,
    /// Those that the HTML refers to as `cid:`.
    pub images: Vec<Arc<LetterImage>>,
    /// Of a letter.
    pub list_id: Option<ListId>,
}

impl RenderedMail {
    /// The HTML as a browser shows it, which finds each image at its URL.
    pub fn html_with_images(&self, url: impl Fn(&LetterImage) -> String) -> String {
        let images = self.images.iter();
        images.fold(self.html.clone(), |html, image| html.replace(&format!("cid:{}", image.content_id()), &url(image)))
    }

    /// Refuses a letter that Gmail would cut off, with the unsubscribe link.
    pub fn check_size(&self) -> Result<(), SiteFailure> {
        let bytes = self.html.len();
        if bytes > MAX_LETTER_HTML_BYTES { Err(SiteFailure::LetterTooLong(bytes)) } else { Ok(()) }
    }
}

impl MailTemplates {
    /// Only letters have the postal address.
    pub fn read(content: &Content, base_url: BaseUrl, postal_address: Option<&str>) -> Result<Self, SiteFailure> {
        let files = content.clone();
        // A mail is kept for years, so it has the stable path of an asset.
        let link = move |name: &str| {
            let link = AssetLink { path: assets::path(name), integrity: String::new() };
            let exists = files.has(&format!("assets/{name}"));
            exists.then_some(link).ok_or_else(|| format!("there is no asset {name}"))
        };
        let facts = SiteFacts::read(content)?;
        let words = Words::read(content, &facts.language)?;
        let mut templates = Templates::read(content, link)?.in_language(&words);
        templates.define(&json!({ "look": Look::new(&facts)? }));
        let postal_address = postal_address.unwrap_or_default().to_owned();
        let confirmation_subject = fill(words.word("confirmation", "subject"), &[("app", &facts.name)]);
        let list_id = ListId::new(&facts.name, &base_url.host());
        Ok(Self { app: json!(facts), list_id, confirmation_subject, templates, base_url, postal_address })
    }

    /// Renders the copy of a letter, with a link to its page if it is in the archive.
    pub fn letter(&self, letter: &Letter, to: &MailRecipient, is_archived: bool) -> Result<RenderedMail, SiteFailure> {
        let body = RenderedLetter::new(letter, &self.base_url);
        let page_url = is_archived.then(|| self.base_url.to(&letter_path(&letter.id, &letter.subject)));
        let context = json!({
            "body_html": body.html,
            "body_text": body.text,
            "preview": letter.preview.as_ref().unwrap_or(&body.first_words),
            "postal_address": self.postal_address,
            "opted_in": to.opted_in,
            "through": to.through,
            "unsubscribe_url": to.url,
            "page_url": page_url,
        });
        let mail = self.render("letter", letter.subject.clone(), context)?;
        Ok(RenderedMail { images: letter.images.clone(), list_id: Some(self.list_id.clone()), ..mail })
    }

    /// Renders the mail that asks to confirm an opt-in.
    pub fn confirmation(&self, to: &MailRecipient) -> Result<RenderedMail, SiteFailure> {
        let context = json!({
            "requested": to.opted_in,
            "through": to.through,
            "url": to.url,
            "days": CONFIRMATION_PERIOD.as_secs() / (24 * 60 * 60),
        });
        self.render("confirmation", self.confirmation_subject.clone(), context)
    }

    fn render(&self, name: &str, subject: String, mut context: Value) -> Result<RenderedMail, SiteFailure> {
        context["subject"] = subject.as_str().into();
        context["app"] = self.app.clone();
        context["base_url"] = self.base_url.as_str().into();
        let render = |extension| self.templates.render(&format!("{name}.{extension}"), &context);
        Ok(RenderedMail { html: render("html")?, text: render("txt")?, subject, images: Vec::new(), list_id: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(markdown: &str) -> RenderedMail {
        let base_url = BaseUrl::parse("https://troupe.example").unwrap();
        let templates = MailTemplates::read(&Content::default(), base_url, Some("1 Lamp Street\nOldtown")).unwrap();
        let to = MailRecipient {
            opted_in: "2026-10-02".to_owned(),
            through: "the site",
            url: "https://troupe.example/unsubscribe/TOKEN".to_owned(),
        };
        templates.letter(&Letter::parse(markdown).unwrap(), &to, false).unwrap()
    }

    #[test]
    fn both_parts_have_the_text_and_the_unsubscribe_link() {
        let rendered = render("# What is new\n\n*Bots* answer sooner: [read on](/releases). <b>x</b>\n");
        assert!(rendered.html.contains("<em>Bots</em> answer sooner: <a href=\"https://troupe.example/releases\">"));
        assert!(rendered.text.contains("Bots answer sooner: read on <https://troupe.example/releases>."));
        assert!(rendered.html.contains(">Bots answer sooner: read on. x&#847;"), "{}", rendered.html);
        for part in [&rendered.html, &rendered.text] {
            for fact in
                ["1 Lamp Street", "Oldtown", "2 October 2026", "the site", "https://troupe.example/unsubscribe/TOKEN"]
            {
                assert!(part.contains(fact), "{fact}: {part}");
            }
        }
        assert!(!rendered.html.contains("<b>x</b>"));
    }

    #[test]
    fn the_footer_names_the_maker_once() {
        for address in ["1 Lamp Street\nOldtown", "the makers of Troupe, 1 Lamp Street\nOldtown"] {
            let base_url = BaseUrl::parse("https://troupe.example").unwrap();
            let templates = MailTemplates::read(&Content::default(), base_url, Some(address)).unwrap();
            let to = MailRecipient { opted_in: "2026-10-02".to_owned(), through: "the site", url: String::new() };
            let mail = templates.letter(&Letter::parse("# A\n").unwrap(), &to, false).unwrap();
            for part in [&mail.html, &mail.text] {
                assert_eq!(part.to_lowercase().matches("the makers of troupe").count(), 1, "{part}");
            }
            assert!(mail.html.contains("1 Lamp Street<br>Oldtown</p>"), "{}", mail.html);
            assert!(mail.text.trim_end().ends_with(address), "{}", mail.text);
        }
    }

    #[test]
    fn nothing_in_a_letter_reveals_that_it_was_read() {
        let rendered = render("# What is new\n\n<img src=\"https://elsewhere.example/pixel.gif\">\n\nText\n");
        for tracker in ["<img", "<link", "<script", "url(", "@import", "pixel.gif"] {
            assert!(!rendered.html.contains(tracker), "{tracker}: {}", rendered.html);
        }
    }
}

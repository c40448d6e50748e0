//! The letters in the archive as pages of the site. A letter is never rendered as a template.

use std::sync::Arc;

use serde_json::{Value, json};

use super::content::{Content, SiteFailure};
use super::facts::Policies;
use super::language::Language;
use super::markdown::ArchivedMarkdown;
use super::notes::SiteNote;
use super::page::{ListedPage, Page, PageAddress, PageSource};
use super::render::PageRenderer;
use crate::domain::letters::{ArchivedLetter, LETTERS_PATH, LetterImage, letter_path};
use crate::domain::network::BaseUrl;
use crate::domain::time::Timestamp;

/// The page that lists the letters.
pub(super) const LIST: &str = "letters";
const NAME: &str = "archived_letter";
const TEMPLATE: &str = "archived_letter.html";

/// The page of one letter.
#[derive(Debug)]
pub struct LetterPage {
    pub listed: ListedPage,
    pub sent: Timestamp,
    /// Below the subject, with absolute links.
    pub feed_html: String,
    /// With their paths.
    pub images: Vec<(String, Arc<LetterImage>)>,
}

/// A letter whose Markdown is made, but not its page.
pub(super) struct LetterSource<'a> {
    archived: &'a ArchivedLetter,
    address: PageAddress,
    markdown: ArchivedMarkdown,
}

pub(super) fn list_address() -> PageAddress {
    PageAddress { name: LIST.to_owned(), path: LETTERS_PATH.to_owned(), markdown_path: format!("{LETTERS_PATH}.md") }
}

/// A page of the makers for an archive that is off.
pub(super) fn unused_list(content: &Content, policies: &Policies) -> Option<SiteNote> {
    let file = format!("pages/{LIST}.md");
    let is_unused = !policies.letters_archive && content.own_names(&file).contains(&file);
    is_unused.then(|| SiteNote::unused(file, "it is the page of the archive, and `letters_archive` is not on"))
}

impl<'a> LetterSource<'a> {
    pub(super) fn new(archived: &'a ArchivedLetter, base_url: &BaseUrl) -> Self {
        let path = letter_path(&archived.letter.id, &archived.letter.subject);
        let address = PageAddress { name: NAME.to_owned(), markdown_path: format!("{path}.md"), path };
        Self { archived, address, markdown: ArchivedMarkdown::new(&archived.letter, base_url) }
    }

    /// What the letter is about, in a line.
    fn preview(&self) -> &str {
        self.archived.letter.preview.as_ref().unwrap_or(&self.markdown.first_words)
    }

    /// The letter as the templates' variable `letters` lists it.
    pub(super) fn listing(&self) -> Value {
        let date = self.archived.sent.date();
        json!({
            "title": self.archived.letter.subject,
            "preview": self.preview(),
            "path": self.address.path,
            "year": date.split('-').next(),
            "date": date,
        })
    }

    pub(super) fn render(self, renderer: &PageRenderer, language: &Language) -> Result<LetterPage, SiteFailure> {
        let ArchivedLetter { letter, sent } = self.archived;
        let (document, base_url) = (&self.markdown.document, renderer.base_url.as_str());
        let description = if self.preview().is_empty() { &letter.subject } else { self.preview() };
        let source = PageSource {
            title: letter.subject.clone(),
            description: description.to_owned(),
            last_updated: sent.date(),
            template: TEMPLATE.to_owned(),
            language: language.clone(),
            ..PageSource::default()
        };
        let images = letter.images.iter().map(|image| (letter.image_path(image), Arc::clone(image)));
        let images: Vec<_> = images.collect();
        let mut context = renderer.context(&source, NAME, Some(&self.address), document);
        let body = context["body"].as_str().and_then(|body| body.split_once("</h1>\n")).unwrap_or_default().1;
        // The browser leaves room for an image that it has not loaded yet.
        let body = images.iter().fold(body.to_owned(), |body, (path, image)| {
            let (tag, (width, height)) = (format!("<img src=\"{path}\""), image.shown_size());
            body.replace(&tag, &format!("{tag} width=\"{width}\" height=\"{height}\""))
        });
        let feed_html = ["href", "src"].iter().fold(body.clone(), |html, attribute| {
            html.replace(&format!(" {attribute}=\"/"), &format!(" {attribute}=\"{base_url}/"))
        });
        context["body"] = body.into();
        context["translations"] = json!([]);
        let page = renderer.lay_out(source, Some(&self.address), document, context)?;
        let listed = ListedPage {
            address: self.address,
            is_built_in: false,
            is_prominent: false,
            noindex: false,
            language: language.clone(),
            translation_of: None,
            page: Page { context: Value::Null, ..page },
        };
        Ok(LetterPage { listed, sent: *sent, feed_html, images })
    }
}

//! Renders one page: its HTML, and its Markdown for agents.

use serde_json::{Value, json};

use super::content::{Content, SiteFailure};
use super::language::Language;
use super::languages::Languages;
use super::markdown::Document;
use super::navigation::{NavItem, NavTitle};
use super::page::{Page, PageAddress, PageFile, PageSource};
use crate::domain::network::BaseUrl;

/// What all pages share.
pub(super) struct PageRenderer<'a> {
    pub content: &'a Content,
    pub base_url: &'a BaseUrl,
    pub languages: &'a Languages,
    pub nav: &'a [NavItem],
    /// The path of the home page in each language that has one.
    pub homes: &'a [(Language, String)],
    /// The line above all pages.
    pub notice: Option<&'a str>,
}

impl PageRenderer<'_> {
    /// Renders a page that has no canonical URL and is not to be indexed.
    pub(super) fn unlisted(&self, name: &str, language: &Language, is_of_site: bool) -> Result<Page, SiteFailure> {
        let file = self.content.page_file(name, language.as_str(), is_of_site);
        let source = PageFile::read(self.content, file, language)?.render(self.languages.templates(language), name)?;
        self.render(source, name, None, &[])
    }

    /// `name` is that of the page, or of the page that it translates.
    pub(super) fn render(
        &self,
        source: PageSource,
        name: &str,
        address: Option<&PageAddress>,
        translations: &[Value],
    ) -> Result<Page, SiteFailure> {
        let templates = self.languages.templates(&source.language);
        let body = templates.render_str(&source.file, &source.body, &());
        let body = Document::parse(&body.map_err(|failure| failure.below(&source.file, source.lines_above))?);
        let mut context = self.context(&source, name, address, &body);
        context["translations"] = translations.into();
        self.lay_out(source, address, &body, context)
    }

    /// Renders a page of which the variables of its template are known.
    pub(super) fn lay_out(
        &self,
        source: PageSource,
        address: Option<&PageAddress>,
        body: &Document,
        context: Value,
    ) -> Result<Page, SiteFailure> {
        Ok(Page {
            markdown: self.markdown(&source, address, body),
            html: self.languages.templates(&source.language).render(&source.template, &context)?,
            file: source.file,
            title: source.title,
            description: source.description,
            last_updated: source.last_updated,
            template: source.template,
            context,
        })
    }

    fn markdown(&self, source: &PageSource, address: Option<&PageAddress>, body: &Document) -> String {
        let canonical =
            address.map(|page| format!("canonical_url: {}\n", self.base_url.to(&page.path))).unwrap_or_default();
        let other_fields = source.other_fields.iter().map(|(name, value)| format!("{name}: {}\n", yaml(value)));
        let other_fields = other_fields.collect::<Vec<_>>().concat();
        let notice = self.notice.map(|notice| format!("**{notice}**\n\n")).unwrap_or_default();
        format!(
            "---\ntitle: {}\ndescription: {}\n{canonical}last_updated: {}\n{other_fields}---\n\n{notice}\
             > For agents: {} answers most wishes: the facts, and which call serves which wish. `{{#x}}` is the anchor of a \
             heading: cite it as `#x` after the address of the page.\n\n{}",
            yaml(&source.title),
            yaml(&source.description),
            source.last_updated,
            self.base_url.to("/llms.txt"),
            body.with_anchors_and_absolute_links(self.base_url.as_str()),
        )
    }

    pub(super) fn context(
        &self,
        source: &PageSource,
        name: &str,
        address: Option<&PageAddress>,
        body: &Document,
    ) -> Value {
        let path = address.map(|address| &address.path);
        let words = self.languages.words(&source.language);
        let nav = self.nav.iter().filter_map(|item| item.in_language(&source.language)).map(|link| {
            let title = match &link.title {
                NavTitle::Written(title) => title,
                NavTitle::Word(name) => words.word("site", name),
            };
            json!({ "title": title, "path": link.path, "current": Some(&link.path) == path })
        });
        let home = self.homes.iter().find(|(language, _)| *language == source.language);
        let page = json!({
            "name": name,
            "title": source.title,
            "description": source.description,
            "last_updated": source.last_updated,
            "path": path,
            "canonical": path.map(|path| self.base_url.to(path)),
            "markdown_url": address.map(|address| &address.markdown_path),
            "noindex": address.is_none() || source.noindex,
        });
        let mut context = json!(body.render());
        context["page"] = page;
        context["nav"] = nav.collect();
        context["home"] = home.map_or("/", |(_, path)| path).into();
        context
    }
}

/// Quotes a text as a YAML string. A JSON string is one.
fn yaml(text: &str) -> String {
    Value::from(text).to_string()
}

//! Makes the whole site from its files, once.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::assets::Assets;
use super::json_ld::json_ld;
use super::markdown::{Anchored, MarkdownFile};
use super::templates::Templates;
use super::{Content, Form, Page, PageName, SiteFacts, SiteFailure};
use crate::domain::base_url::BaseUrl;

const APPCAST: &str = "appcast.xml";

/// The finished site.
#[derive(Debug)]
pub struct Site {
    pub facts: SiteFacts,
    pub assets: Arc<Assets>,
    pub llms_txt: String,
    pub agents_md: String,
    pub skill: Skill,
    pub not_found: Page,
    /// Where a form leads that did what it was asked.
    pub download_started: Page,
    pub contact_sent: Page,
    /// A list of releases that the makers made and signed themselves.
    pub appcast: Option<Vec<u8>>,
    /// Leaving the monthly email: before it, and after it.
    pub unsubscribe: Page,
    pub unsubscribed: Page,
    pub never_again: Page,
    pages: [Page; 6],
    templates: Templates,
}

/// What an agent learns to use the site from.
#[derive(Clone, Debug)]
pub struct Skill {
    pub name: String,
    pub description: String,
    pub text: String,
}

impl Site {
    /// `reference` holds what pages say of the interface; its members stand beside `app`,
    /// `base_url` and `pages` in every template.
    ///
    /// # Errors
    /// With the file and line that is at fault.
    pub fn build(content: &Content, base_url: &BaseUrl, reference: &Value) -> Result<Self, SiteFailure> {
        let facts = SiteFacts::read(content)?;
        let assets = Arc::new(Assets::read(content)?);
        let templates = Templates::read(content, &assets)?;
        let mut shared = json!({
            "app": facts,
            "base_url": base_url.as_str(),
            "json_ld": json_ld(&facts, base_url, &reference["release"]),
            "form": Form::default(),
        });
        merge(&mut shared, reference);

        let draft = |name: &str| PageSource::read(content, &templates, &format!("pages/{name}.md"), &shared);
        let drafts = PageName::ALL.map(|name| draft(name.as_str()));
        let drafts = drafts.into_iter().collect::<Result<Vec<_>, _>>()?;
        let (not_found, started, sent) = (draft("not_found")?, draft("download_started")?, draft("contact_sent")?);
        let (leave, left, never) = (draft("unsubscribe")?, draft("unsubscribed")?, draft("never_again")?);
        let listing = PageName::ALL.iter().zip(&drafts).map(|(name, draft)| listing(*name, draft, base_url)).collect();
        shared["pages"] = listing;

        let renderer = PageRenderer { base_url, templates: &templates, shared: &shared };
        let pages = PageName::ALL
            .into_iter()
            .zip(drafts)
            .map(|(name, draft)| renderer.render(draft, name.as_str(), Some(name)));
        let pages = pages.collect::<Result<Vec<_>, _>>()?;
        let plain = |file: &str| templates.render_str(file, &content.text(file)?, &shared);
        Ok(Self {
            not_found: renderer.render(not_found, "not_found", None)?,
            download_started: renderer.render(started, "download_started", None)?,
            contact_sent: renderer.render(sent, "contact_sent", None)?,
            unsubscribe: renderer.render(leave, "unsubscribe", None)?,
            unsubscribed: renderer.render(left, "unsubscribed", None)?,
            never_again: renderer.render(never, "never_again", None)?,
            pages: <[Page; 6]>::try_from(pages).map_err(|_| SiteFailure::Missing("pages".to_owned()))?,
            llms_txt: plain("agents/llms.txt")?,
            agents_md: plain("agents/agents.md")?,
            skill: Skill::read(plain("agents/skill.md")?)?,
            appcast: if content.has(APPCAST) { Some(content.bytes(APPCAST)?.into_owned()) } else { None },
            facts,
            assets,
            templates,
        })
    }

    #[must_use]
    pub fn page(&self, name: PageName) -> &Page {
        &self.pages[name as usize]
    }

    /// A page whose form came back: with what was typed, and what was wrong with it.
    ///
    /// # Errors
    /// When the template cannot show a form that came back.
    pub fn render_with_form(&self, name: PageName, form: &Form) -> Result<String, SiteFailure> {
        let page = self.page(name);
        let mut context = page.context.clone();
        context["form"] = json!(form);
        self.templates.render(&page.template, &context)
    }

    /// Fills in a page that is none of the site's own, with the site's assets at hand.
    ///
    /// # Errors
    /// With the line that is at fault.
    pub fn render_str(&self, file: &str, text: &str, context: &impl Serialize) -> Result<String, SiteFailure> {
        self.templates.render_str(file, text, context)
    }
}

impl Skill {
    fn read(text: String) -> Result<Self, SiteFailure> {
        const FILE: &str = "agents/skill.md";
        let source = MarkdownFile::split(FILE, &text)?;
        let get = |key| source.get(FILE, key).map(str::to_owned);
        Ok(Self { name: get("name")?, description: get("description")?, text })
    }
}

/// A page's source, with its front matter filled in.
struct PageSource {
    file: String,
    source: MarkdownFile,
    title: String,
    description: String,
    last_updated: String,
}

impl PageSource {
    fn read(content: &Content, templates: &Templates, file: &str, shared: &Value) -> Result<Self, SiteFailure> {
        let source = MarkdownFile::split(file, &content.text(file)?)?;
        let filled = |key| templates.render_str(file, source.get(file, key)?, shared);
        Ok(Self {
            title: filled("title")?,
            description: filled("description")?,
            last_updated: filled("last_updated")?,
            file: file.to_owned(),
            source,
        })
    }
}

/// What all pages are printed with.
struct PageRenderer<'a> {
    base_url: &'a BaseUrl,
    templates: &'a Templates,
    shared: &'a Value,
}

impl PageRenderer<'_> {
    /// `place` is where the page stands among the five; others have no address of their own that
    /// anybody should keep.
    fn render(&self, draft: PageSource, name: &str, place: Option<PageName>) -> Result<Page, SiteFailure> {
        let body = Anchored::new(&self.templates.render_str(&draft.file, &draft.source.body, self.shared)?);
        let template = Some(format!("{name}.html")).filter(|template| self.templates.has(template));
        let template = template.unwrap_or_else(|| "page.html".to_owned());
        let context = self.context(&draft, name, place, &body);
        Ok(Page {
            markdown: self.markdown(&draft, place, &body),
            html: self.templates.render(&template, &context)?,
            title: draft.title,
            description: draft.description,
            last_updated: draft.last_updated,
            template,
            context,
        })
    }

    fn markdown(&self, draft: &PageSource, place: Option<PageName>, body: &Anchored) -> String {
        let canonical =
            place.map(|place| format!("canonical_url: {}\n", self.base_url.to(place.path()))).unwrap_or_default();
        format!(
            "---\ntitle: {}\ndescription: {}\n{canonical}last_updated: {}\n---\n\n\
             > For agents: {} lists every page and endpoint.\n\n{}",
            yaml(&draft.title),
            yaml(&draft.description),
            draft.last_updated,
            self.base_url.to("/llms.txt"),
            body.with_absolute_links(self.base_url.as_str()),
        )
    }

    fn context(&self, draft: &PageSource, name: &str, place: Option<PageName>, body: &Anchored) -> Value {
        let nav: Vec<_> = PageName::MAIN
            .iter()
            .skip(1)
            .map(|page| {
                json!({ "title": capitalised(page.as_str()), "path": page.path(), "current": Some(*page) == place })
            })
            .collect();
        let page = json!({
            "name": name,
            "title": draft.title,
            "description": draft.description,
            "last_updated": draft.last_updated,
            "path": place.map(PageName::path),
            "canonical": place.map(|place| self.base_url.to(place.path())),
            "markdown_url": place.map(PageName::markdown_path),
            "noindex": place.is_none(),
        });
        let mut context = self.shared.clone();
        merge(&mut context, &json!({ "page": page, "nav": nav }));
        merge(&mut context, &json!(body.outline()));
        context
    }
}

fn listing(name: PageName, draft: &PageSource, base_url: &BaseUrl) -> Value {
    json!({
        "name": name.as_str(),
        "main": PageName::MAIN.contains(&name),
        "path": name.path(),
        "title": draft.title,
        "description": draft.description,
        "url": base_url.to(name.path()),
        "markdown_url": base_url.to(name.markdown_path()),
    })
}

fn merge(into: &mut Value, from: &Value) {
    if let (Some(into), Some(from)) = (into.as_object_mut(), from.as_object()) {
        into.extend(from.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

/// A text as YAML reads it back, whatever it holds.
fn yaml(text: &str) -> String {
    Value::from(text).to_string()
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

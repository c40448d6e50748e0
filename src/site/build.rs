//! Makes the whole site from its files, once.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::{Value, json};

use super::markdown::{Anchored, Source};
use super::{Content, Facts, Page, PageName, SiteFailure};
use crate::domain::base_url::BaseUrl;
use crate::domain::digest::Digest;

/// The finished site.
#[derive(Clone, Debug)]
pub struct Site {
    pub facts: Facts,
    pub not_found: Page,
    pub llms_txt: String,
    pub agents_md: String,
    pub skill: Skill,
    pub style: Asset,
    pub icon: Asset,
    pages: [Page; 5],
}

/// What an agent learns to use the site from.
#[derive(Clone, Debug)]
pub struct Skill {
    pub name: String,
    pub description: String,
    pub text: String,
}

/// A file that pages refer to by a name that changes with its content.
#[derive(Clone, Debug)]
pub struct Asset {
    pub path: String,
    pub bytes: Vec<u8>,
    integrity: String,
}

impl Site {
    /// `reference` holds what pages say of the interface; its members stand beside `app`,
    /// `base_url` and `pages` in every template.
    ///
    /// # Errors
    /// With the file and line that is at fault.
    pub fn build(content: Content, base_url: &BaseUrl, reference: &Value) -> Result<Self, SiteFailure> {
        let facts = Facts::read(content)?;
        let style = Asset::read(content, "style", "css")?;
        let icon = Asset::read(content, "icon", "svg")?;
        let mut shared = json!({ "app": facts, "base_url": base_url.as_str() });
        merge(&mut shared, reference);

        let mut drafts = Vec::new();
        for name in PageName::ALL {
            drafts.push(Draft::read(content, &format!("pages/{}.md", name.as_str()), &shared)?);
        }
        shared["pages"] =
            PageName::ALL.iter().zip(&drafts).map(|(name, draft)| listing(*name, draft, base_url)).collect();

        let press = Press { content, base_url, shared: &shared, style: &style, icon: &icon };
        let mut pages = Vec::new();
        for (name, draft) in PageName::ALL.into_iter().zip(drafts) {
            pages.push(press.print(draft, Some(name))?);
        }
        let pages = <[Page; 5]>::try_from(pages).map_err(|_| SiteFailure::Missing("pages".to_owned()))?;
        let not_found = press.print(Draft::read(content, "pages/not_found.md", &shared)?, None)?;
        let plain = |file: &str| render(file, &content.text(file)?, &shared);
        Ok(Self {
            pages,
            not_found,
            llms_txt: plain("agents/llms.txt")?,
            agents_md: plain("agents/agents.md")?,
            skill: Skill::read(plain("agents/skill.md")?)?,
            facts,
            style,
            icon,
        })
    }

    #[must_use]
    pub fn page(&self, name: PageName) -> &Page {
        &self.pages[name as usize]
    }
}

impl Skill {
    fn read(text: String) -> Result<Self, SiteFailure> {
        const FILE: &str = "agents/skill.md";
        let source = Source::split(FILE, &text)?;
        let get = |key| source.get(FILE, key).map(str::to_owned);
        Ok(Self { name: get("name")?, description: get("description")?, text })
    }
}

impl Asset {
    fn read(content: Content, stem: &str, kind: &str) -> Result<Self, SiteFailure> {
        let bytes = content.bytes(&format!("assets/{stem}.{kind}"))?.into_owned();
        let digest = Digest::of(&bytes);
        Ok(Self {
            path: format!("/assets/{stem}.{}.{kind}", digest.short(12)),
            integrity: format!("sha256-{}", digest.base64()),
            bytes,
        })
    }
}

/// A page's source, with its front matter filled in.
struct Draft {
    file: String,
    source: Source,
    title: String,
    description: String,
    last_updated: String,
}

impl Draft {
    fn read(content: Content, file: &str, shared: &Value) -> Result<Self, SiteFailure> {
        let source = Source::split(file, &content.text(file)?)?;
        let filled = |key| render(file, source.get(file, key)?, shared);
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
struct Press<'a> {
    content: Content,
    base_url: &'a BaseUrl,
    shared: &'a Value,
    style: &'a Asset,
    icon: &'a Asset,
}

impl Press<'_> {
    /// A page without a name has no address of its own: the one for addresses that lead nowhere.
    fn print(&self, draft: Draft, name: Option<PageName>) -> Result<Page, SiteFailure> {
        let body = Anchored::new(&render(&draft.file, &draft.source.body, self.shared)?);
        Ok(Page {
            markdown: self.markdown(&draft, name, &body),
            html: self.html(&draft, name, &body)?,
            title: draft.title,
            description: draft.description,
            last_updated: draft.last_updated,
        })
    }

    fn markdown(&self, draft: &Draft, name: Option<PageName>, body: &Anchored) -> String {
        let canonical =
            name.map(|name| format!("canonical_url: {}\n", self.base_url.to(name.path()))).unwrap_or_default();
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

    fn html(&self, draft: &Draft, name: Option<PageName>, body: &Anchored) -> Result<String, SiteFailure> {
        const FILE: &str = "templates/page.html";
        let nav: Vec<_> = PageName::ALL
            .iter()
            .skip(1)
            .map(|page| {
                json!({ "title": capitalised(page.as_str()), "path": page.path(), "current": Some(*page) == name })
            })
            .collect();
        let page = json!({
            "name": name.map_or("not_found", PageName::as_str),
            "title": draft.title,
            "description": draft.description,
            "path": name.map(PageName::path),
            "canonical": name.map(|name| self.base_url.to(name.path())),
            "markdown_url": name.map(PageName::markdown_path),
            "noindex": name.is_none(),
        });
        let source = self.content.text(FILE)?;
        let mut context = self.shared.clone();
        merge(
            &mut context,
            &json!({
                "page": page,
                "nav": nav,
                "body": body.to_html(),
                "style_url": self.style.path,
                "style_integrity": self.style.integrity,
                "icon_url": self.icon.path,
            }),
        );
        render(FILE, &source, &context)
    }
}

fn listing(name: PageName, draft: &Draft, base_url: &BaseUrl) -> Value {
    json!({
        "name": name.as_str(),
        "path": name.path(),
        "title": draft.title,
        "description": draft.description,
        "url": base_url.to(name.path()),
        "markdown_url": base_url.to(name.markdown_path()),
    })
}

/// Files that end in `.html` escape everything; a name that is not there is a fault, not a blank.
fn render(file: &str, source: &str, context: &Value) -> Result<String, SiteFailure> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(page_syntax().map_err(|error| SiteFailure::template(file, &error))?);
    environment.set_auto_escape_callback(|name| match name.rsplit_once('.') {
        Some((_, "html")) => AutoEscape::Html,
        _ => AutoEscape::None,
    });
    environment.render_named_str(file, source, Serde(context)).map_err(|error| SiteFailure::template(file, &error))
}

/// The usual signs, but for comments, which would take `{#anchor}` for their beginning.
fn page_syntax() -> Result<SyntaxConfig, minijinja::Error> {
    SyntaxConfig::builder().comment_delimiters("<#", "#>").keep_trailing_newline(true).build()
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

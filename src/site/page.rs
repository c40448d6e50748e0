//! The pages of the site with their Markdown files, the form that a page shows again after it was refused, and the skill file for
//! agents.

use serde::Serialize;
use serde_json::Value;

use super::content::{Content, SiteFailure};
use super::language::Language;
use super::templates::Templates;
use crate::domain::text::{FrontMatter, did_you_mean};

/// The pages that every site has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageName {
    Home,
    About,
    Privacy,
    Developers,
    Contact,
    Releases,
}

impl PageName {
    pub const ALL: [Self; 6] =
        [Self::Home, Self::About, Self::Privacy, Self::Developers, Self::Contact, Self::Releases];

    /// The pages that are in the navigation and that agents can read by name.
    pub const MAIN: [Self; 5] = [Self::Home, Self::About, Self::Privacy, Self::Developers, Self::Contact];

    /// The name, the URL path of the page, and that of its Markdown.
    const fn names(self) -> [&'static str; 3] {
        match self {
            Self::Home => ["home", "/", "/index.md"],
            Self::About => ["about", "/about", "/about.md"],
            Self::Privacy => ["privacy", "/privacy", "/privacy.md"],
            Self::Developers => ["developers", "/developers", "/developers.md"],
            Self::Contact => ["contact", "/contact", "/contact.md"],
            Self::Releases => ["releases", "/releases", "/releases.md"],
        }
    }

    pub const fn as_str(self) -> &'static str {
        self.names()[0]
    }

    /// Returns the main page of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::MAIN.into_iter().find(|page| page.as_str() == name)
    }

    /// The URL path of the page.
    pub const fn path(self) -> &'static str {
        self.names()[1]
    }

    /// The URL path that serves Markdown regardless of `Accept`.
    pub const fn markdown_path(self) -> &'static str {
        self.names()[2]
    }
}

/// The addresses of a page that has some: a built-in one, or one that the makers added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageAddress {
    /// The name of its file in `pages/`, without `.md`.
    pub name: String,
    /// The URL path of the page.
    pub path: String,
    /// The URL path that serves Markdown regardless of `Accept`.
    pub markdown_path: String,
}

impl From<PageName> for PageAddress {
    fn from(page: PageName) -> Self {
        let [name, path, markdown_path] = page.names().map(str::to_owned);
        Self { name, path, markdown_path }
    }
}

/// A page with an address of its own.
#[derive(Debug)]
pub struct ListedPage {
    pub address: PageAddress,
    /// Whether it comes with the program, though perhaps with the makers' words.
    pub is_built_in: bool,
    /// Whether it is in the navigation, or the page of a folder.
    pub is_prominent: bool,
    /// Whether search engines and the sitemaps leave it out.
    pub noindex: bool,
    pub language: Language,
    /// The path of the page that this one translates.
    pub translation_of: Option<String>,
    pub page: Page,
}

/// One page, rendered in both formats.
#[derive(Clone, Debug)]
pub struct Page {
    /// The file that it is made from.
    pub(super) file: String,
    pub title: String,
    pub description: String,
    /// A date such as `2026-11-15`.
    pub last_updated: String,
    pub markdown: String,
    pub html: String,
    /// Kept to render the page again when its form is refused.
    pub(super) template: String,
    pub(super) context: Value,
}

/// The values and errors of a form that is shown again after it was refused.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Form {
    pub values: FormValues,
    pub errors: FormErrors,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct FormValues {
    pub email: String,
    pub updates: bool,
    pub name: String,
    pub message: String,
}

/// One sentence each, or empty.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FormErrors {
    pub email: String,
    pub name: String,
    pub message: String,
    /// An error that concerns no single field.
    pub form: String,
}

impl FormErrors {
    pub(super) fn translated(&self, translate: impl Fn(&str) -> String) -> Self {
        let Self { email, name, message, form } = self;
        let [email, name, message, form] = [email, name, message, form].map(|text| translate(text));
        Self { email, name, message, form }
    }
}

/// The fields of the front matter that are not passed on as further lines; the first three are required.
const KNOWN_FIELDS: [&str; 8] =
    ["title", "description", "last_updated", "nav", "noindex", "template", "language", "translation_of"];
const DEFAULT_TEMPLATE: &str = "page.html";

/// Whether a page is in the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nav {
    Hidden,
    Place(u32),
}

/// A page as its file has it: the front matter is rendered, the body is not yet.
#[derive(Default)]
pub(super) struct PageSource {
    pub file: String,
    pub title: String,
    pub description: String,
    pub last_updated: String,
    /// What the page says about its place in the navigation.
    pub nav: Option<Nav>,
    pub noindex: bool,
    pub template: String,
    pub language: Language,
    /// The path of the page that this one translates.
    pub translation_of: Option<String>,
    /// Further lines of the front matter, which the Markdown shows too.
    pub other_fields: Vec<(String, String)>,
    /// How many lines of the file are above the body.
    pub lines_above: usize,
    pub body: String,
}

/// The file of a page, of which nothing is rendered yet.
pub(super) struct PageFile {
    file: String,
    front_matter: FrontMatter,
    body: String,
    pub language: Language,
    pub translation_of: Option<String>,
}

impl PageFile {
    /// `language` is that of pages that name none.
    pub(super) fn read(content: &Content, file: String, language: &Language) -> Result<Self, SiteFailure> {
        let (front_matter, body) = split(&file, &content.text(&file)?)?;
        let written = front_matter.get("language").map(Language::parse).transpose();
        let language = written
            .map_err(|why| SiteFailure::fault(&file, front_matter.line_of("language"), why.to_string()))?
            .unwrap_or_else(|| language.clone());
        let translation_of = front_matter.get("translation_of").map(str::to_owned);
        Ok(Self { file, front_matter, body, language, translation_of })
    }

    pub(super) fn fault(&self, field: &str, why: impl Into<String>) -> SiteFailure {
        SiteFailure::fault(&self.file, self.front_matter.line_of(field), why)
    }

    /// `name` is that of the page, or of the page that it translates: both have the same template, unless it names one.
    pub(super) fn render(self, templates: &Templates, name: &str) -> Result<PageSource, SiteFailure> {
        let render = |name, text| {
            let rendered = templates.render_str(&self.file, text, &());
            rendered.map_err(|failure| failure.below(&self.file, self.front_matter.line_of(name) - 1))
        };
        let rendered = |name| render(name, field(&self.file, &self.front_matter, name)?);
        let body = self.body.trim_start_matches('\n');
        let other_fields = self.front_matter.fields().filter(|(name, _)| !KNOWN_FIELDS.contains(name));
        Ok(PageSource {
            nav: match self.front_matter.get("nav") {
                None => None,
                Some("false") => Some(Nav::Hidden),
                Some(place) => Some(Nav::Place(place.parse().map_err(|_| {
                    self.fault("nav", "write `nav: 2` for the second place in the navigation, or `nav: false`")
                })?)),
            },
            noindex: match self.front_matter.get("noindex") {
                None | Some("false") => false,
                Some("true") => true,
                Some(_) => return Err(self.fault("noindex", "write `noindex: true` or `noindex: false`")),
            },
            template: self.template(templates, name)?,
            title: rendered("title")?,
            description: rendered("description")?,
            last_updated: rendered("last_updated")?,
            other_fields: other_fields
                .map(|(name, value)| Ok((name.to_owned(), render(name, value)?)))
                .collect::<Result<_, SiteFailure>>()?,
            lines_above: self.front_matter.end_line + self.body.len() - body.len(),
            body: body.to_owned() + "\n",
            language: self.language,
            translation_of: self.translation_of,
            file: self.file,
        })
    }

    fn template(&self, templates: &Templates, name: &str) -> Result<String, SiteFailure> {
        match self.front_matter.get("template") {
            None => {
                Ok(Some(format!("{name}.html")).filter(|own| templates.has(own)).unwrap_or(DEFAULT_TEMPLATE.to_owned()))
            }
            Some(template) if templates.has(template) => Ok(template.to_owned()),
            Some(unknown) => {
                let meant = did_you_mean(unknown, templates.names());
                Err(self.fault("template", format!("there is no template `{unknown}` in templates/.{meant}")))
            }
        }
    }
}

/// The skill file, from which agents learn to use the site.
#[derive(Clone, Debug)]
pub struct Skill {
    pub name: String,
    pub description: String,
    /// The whole file.
    pub text: String,
}

impl Skill {
    pub(super) const FILE: &str = "agents/skill.md";

    pub(super) fn parse(text: String) -> Result<Self, SiteFailure> {
        let (front_matter, _) = split(Self::FILE, &text)?;
        let field = |name| field(Self::FILE, &front_matter, name).map(str::to_owned);
        Ok(Self { name: field("name")?, description: field("description")?, text })
    }
}

/// Splits a file that has to start with front matter, of which every line has to be a field.
fn split(file: &str, text: &str) -> Result<(FrontMatter, String), SiteFailure> {
    let (front_matter, body) =
        FrontMatter::split(text).map_err(|error| SiteFailure::fault(file, 1, error.to_string()))?;
    let front_matter = front_matter
        .ok_or_else(|| SiteFailure::fault(file, 1, "it has to start with front matter between two lines of ---"))?;
    match front_matter.invalid_line {
        Some(line) => Err(SiteFailure::fault(file, line, "front matter has lines of the form name: value")),
        None => Ok((front_matter, body)),
    }
}

fn field<'a>(file: &str, front_matter: &'a FrontMatter, name: &str) -> Result<&'a str, SiteFailure> {
    front_matter.get(name).ok_or_else(|| SiteFailure::fault(file, 1, format!("its front matter has no {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_in_the_front_matter_name_file_and_line() {
        for (text, line, why) in [
            ("# Hi", 1, "it has to start with front matter between two lines of ---"),
            ("---\nname: x\n", 1, "its front matter does not end with a line of ---"),
            ("---\nname: x\nnonsense\n---\n", 3, "front matter has lines of the form name: value"),
            ("---\nname: x\n---\n", 1, "its front matter has no description"),
        ] {
            assert_eq!(Skill::parse(text.to_owned()).unwrap_err(), SiteFailure::fault(Skill::FILE, line, why));
        }
        let fault = Skill::parse("---\nname: x\nnonsense\n---\n".to_owned()).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "The site's file agents/skill.md has a fault in line 3: front matter has lines of the form name: value."
        );
    }
}

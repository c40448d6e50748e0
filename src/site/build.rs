//! Builds the whole site from its files, once.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::assets::Assets;
use super::content::{Content, SiteFailure};
use super::facts::{Policies, SiteFacts};
use super::json_ld::json_ld;
use super::language::{Language, fill};
use super::languages::{Languages, check_translations, translations};
use super::letters::{self, LetterPage, LetterSource};
use super::links::broken_links;
use super::look::Look;
use super::navigation::{NavItem, navigation, redirects};
use super::notes::{SiteNote, unused_files};
use super::own_pages::own_pages;
use super::page::{Form, FormValues, ListedPage, Page, PageAddress, PageFile, PageName, PageSource, Skill};
use super::render::PageRenderer;
use super::starter::{SampleText, sample_texts};
use super::templates::Templates;
use crate::domain::letters::ArchivedLetter;
use crate::domain::network::BaseUrl;
use crate::domain::releases::Releases;
use crate::domain::signups::Wording;

const APPCAST: &str = "appcast.xml";
/// The style sheets of all pages, in their order. The second one is the makers' own.
const STYLES: [&str; 2] = ["style.css", "custom.css"];

/// The finished site.
#[derive(Debug)]
pub struct Site {
    pub facts: SiteFacts,
    pub assets: Arc<Assets>,
    pub llms_txt: String,
    pub agents_md: String,
    pub skill: Skill,
    pub not_found: Page,
    /// In every language that a form may have.
    pub after_forms: BTreeMap<Language, AfterForms>,
    /// An appcast that the makers wrote and signed themselves.
    pub appcast: Option<Bytes>,
    /// Asks whether to confirm an opt-in.
    pub confirm: Page,
    pub confirmed: Page,
    /// Says how to ask again, because the link is unknown or has expired.
    pub confirm_expired: Page,
    /// Asks whether to unsubscribe.
    pub unsubscribe: Page,
    pub unsubscribed: Page,
    /// Where the unsubscribe link of a test copy leads.
    pub test_copy: Page,
    /// Shown to recipients who say that they never signed up.
    pub never_again: Page,
    /// The built-in ones first, as in [`PageName::ALL`].
    pages: Vec<ListedPage>,
    /// Those in the archive, the newest first.
    pub letters: Vec<LetterPage>,
    /// Old addresses, and what they lead to.
    pub redirects: Vec<(String, String)>,
    /// What makers may want to change in their files.
    pub notes: Vec<SiteNote>,
    pub sample_texts: Vec<SampleText>,
    languages: Languages,
}

/// The pages that are shown after a form was accepted.
#[derive(Debug)]
pub struct AfterForms {
    pub download_started: Page,
    pub contact_sent: Page,
}

/// What the site is built of besides its files.
#[expect(missing_debug_implementations, reason = "a closure has none")]
pub struct SiteInput<'a> {
    pub policies: &'a Policies,
    pub base_url: &'a BaseUrl,
    /// Describes the interface (endpoints, tools, errors, limits, releases). Its members are variables of every template, beside
    /// `app`, `policies`, `base_url`, `pages` and `letters`.
    pub reference: &'a Value,
    /// The archive, the newest first.
    pub letters: &'a [ArchivedLetter],
    /// Tells whether a path belongs to the interface.
    pub is_taken: &'a dyn Fn(&str) -> bool,
    /// The assets of the last build.
    pub before: Option<&'a Assets>,
}

impl Site {
    pub fn build(content: &Content, facts: SiteFacts, input: &SiteInput) -> Result<Self, SiteFailure> {
        let &SiteInput { policies, base_url, reference, letters, is_taken, before } = input;
        let look = Look::new(&facts)?;
        let assets = Arc::new(Assets::read(content, before, &look.style)?);
        let linked = Arc::clone(&assets);
        let mut templates = Templates::read(content, move |name| linked.link(name))?;
        templates.define(&json!({
            "policies": policies,
            "is_worked_on": content.is_worked_on(),
            "base_url": base_url.as_str(),
            "json_ld": json_ld(&facts, base_url, &reference["release"]),
            "form": Form::default(),
            "look": look,
            "styles": STYLES.iter().filter(|name| assets.get(name).is_some()).collect::<Vec<_>>(),
        }));
        templates.define(reference);
        let letters: Vec<_> = letters.iter().map(|letter| LetterSource::new(letter, base_url)).collect();
        templates.define(&json!({ "letters": letters.iter().map(LetterSource::listing).collect::<Value>() }));

        let (own, mut notes) = own_pages(content, is_taken);
        notes.extend(assets.unused().iter().cloned().chain(letters::unused_list(content, policies)));
        let list = policies.letters_archive.then(letters::list_address);
        let addresses = PageName::ALL.into_iter().map(PageAddress::from).chain(list).chain(own).collect::<Vec<_>>();
        let redirects = redirects(&facts, &addresses, is_taken)?;
        let files = addresses.into_iter().map(|address| {
            let file = content.page_file(&address.name, facts.language.as_str(), true);
            PageFile::read(content, file, &facts.language).map(|file| (address, file))
        });
        let files = files.collect::<Result<Vec<_>, _>>()?;
        check_translations(&files)?;
        let mut languages =
            Languages::new(content, &templates, &facts.language, files.iter().map(|(_, file)| file.language.clone()))?;

        languages.define_facts(&facts.template_variable(), &reference["sample"]);
        let names = names(&files);
        let sources = files.into_iter().zip(&names).map(|((address, file), name)| {
            let templates = languages.templates(&file.language);
            file.render(templates, name).map(|source| (address, source))
        });
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        notes.extend(unused_files(content, &sources.iter().map(|(_, source)| source.template.as_str()).collect()));
        let nav = navigation(&facts, &sources)?;
        let listing = sources.iter().map(|(address, source)| listing(address, source, &nav, base_url));
        languages.define(&json!({ "pages": listing.collect::<Value>() }));

        let homes = homes(&sources);
        let renderer = PageRenderer {
            content,
            base_url,
            languages: &languages,
            nav: &nav,
            homes: &homes,
            notice: facts.notice.as_deref(),
        };
        let translated: Vec<_> = sources
            .iter()
            .map(|(address, source)| (address.clone(), source.language.clone(), source.translation_of.clone()))
            .collect();
        let pages = sources.into_iter().zip(&names).map(|((address, source), name)| {
            let translations = translations(&translated, &address, &languages, base_url);
            Ok(ListedPage {
                is_built_in: is_built_in(&address),
                is_prominent: is_prominent(&address, &source, &nav),
                noindex: source.noindex,
                language: source.language.clone(),
                translation_of: source.translation_of.clone(),
                page: renderer.render(source, name, Some(&address), &translations)?,
                address,
            })
        });
        let pages = pages.collect::<Result<Vec<_>, SiteFailure>>()?;
        let letters = letters.into_iter().map(|letter| letter.render(&renderer, &facts.language));
        let letters = letters.collect::<Result<Vec<_>, _>>()?;
        let unlisted = |name: &str| renderer.unlisted(name, &facts.language, true);
        let after_forms = languages.all().map(|language| {
            let page = |name: &str| renderer.unlisted(name, language, *language == facts.language);
            let pages = AfterForms { download_started: page("download_started")?, contact_sent: page("contact_sent")? };
            Ok((language.clone(), pages))
        });
        let after_forms = after_forms.collect::<Result<BTreeMap<_, _>, SiteFailure>>()?;
        let agent_file = |file: &str| languages.english().render_str(file, &content.text(file)?, &());
        Ok(Self {
            not_found: unlisted("not_found")?,
            after_forms,
            confirm: unlisted("confirm")?,
            confirmed: unlisted("confirmed")?,
            confirm_expired: unlisted("confirm_expired")?,
            unsubscribe: unlisted("unsubscribe")?,
            unsubscribed: unlisted("unsubscribed")?,
            test_copy: unlisted("test_copy")?,
            never_again: unlisted("never_again")?,
            pages,
            letters,
            redirects,
            notes,
            sample_texts: sample_texts(content),
            llms_txt: agent_file("agents/llms.txt")?,
            agents_md: agent_file("agents/agents.md")?,
            skill: Skill::parse(agent_file(Skill::FILE)?)?,
            appcast: if content.has(APPCAST) { Some(content.bytes(APPCAST)?) } else { None },
            facts,
            assets,
            languages,
        })
    }

    /// Adds notes about links that lead nowhere. `exists` tells whether the service answers at a path.
    pub fn check_links(
        &mut self,
        content: &Content,
        base_url: &BaseUrl,
        releases: &Releases,
        exists: &dyn Fn(&str) -> bool,
    ) {
        let pages: Vec<_> = self.pages.iter().map(|listed| (&listed.address, &listed.page)).collect();
        let notes = broken_links(content, base_url, &pages, releases, exists);
        self.notes.extend(notes);
    }

    pub fn page(&self, name: PageName) -> &Page {
        &self.pages[name as usize].page
    }

    /// Every page that has an address and a file.
    pub fn pages(&self) -> &[ListedPage] {
        &self.pages
    }

    /// The same, and the letters in the archive.
    pub fn pages_and_letters(&self) -> impl Iterator<Item = &ListedPage> {
        self.pages.iter().chain(self.letters.iter().map(|letter| &letter.listed))
    }

    /// Whether the makers added pages.
    pub fn has_own_pages(&self) -> bool {
        self.pages.iter().any(|page| !page.is_built_in)
    }

    /// The page that agents call by this: the name of a main page, or a path.
    pub fn find(&self, name_or_path: &str) -> Option<&Page> {
        let main = PageName::parse(name_or_path).map(PageName::path);
        let path = main.unwrap_or(name_or_path);
        self.pages_and_letters().find(|page| page.address.path == path).map(|page| &page.page)
    }

    /// The page whose form was sent: that of this path, if it is this page or a translation of it.
    pub fn form_page(&self, name: PageName, path: &str) -> &ListedPage {
        let is_it =
            |page: &&ListedPage| page.address.path == path && page.translation_of.as_deref() == Some(name.path());
        self.pages.iter().find(is_it).unwrap_or(&self.pages[name as usize])
    }

    /// The path of a page of the service in a language.
    pub fn path(&self, language: &Language, path: &str) -> String {
        self.languages.path(language, path)
    }

    /// What feed readers call a feed: `word` is one of the words of the site.
    pub fn feed_title(&self, word: &str) -> String {
        fill(self.languages.words(&self.facts.language).word("site", word), &[("app", &self.facts.name)])
    }

    /// The text next to the opt-in on pages in a language.
    pub fn opt_in_wording(&self, language: &Language) -> Wording {
        Wording::new(self.languages.words(language).word("form", "opt_in"))
    }

    /// Renders a page whose form was refused: with the values that the visitor entered, and the
    /// errors.
    pub fn render_with_form(
        &self,
        ListedPage { page, language, .. }: &ListedPage,
        form: &Form,
    ) -> Result<String, SiteFailure> {
        let words = self.languages.words(language);
        let mut context = page.context.clone();
        context["form"] =
            json!({ "values": form.values, "errors": form.errors.translated(|text| words.translate(text)) });
        self.languages.templates(language).render(&page.template, &context)
    }

    /// Renders the page for a client that exceeded a limit and has to wait. With a form's page, action and values, it can be
    /// submitted again.
    pub fn render_busy(
        &self,
        detail: &str,
        seconds: u64,
        form: Option<(&ListedPage, &str, &FormValues)>,
    ) -> Result<String, SiteFailure> {
        let language = form.map_or(&self.facts.language, |(page, ..)| &page.language);
        let context = json!({
            "detail": detail,
            "seconds": seconds,
            "page": form.map(|(page, ..)| &page.address.path),
            "action": form.map(|(_, action, _)| action),
            "values": form.map(|(.., values)| values),
        });
        self.languages.templates(language).render("busy.html", &context)
    }

    /// Renders a template that is not one of the site's files, but may use the site's assets.
    pub fn render_str(&self, file: &str, text: &str, context: &impl Serialize) -> Result<String, SiteFailure> {
        self.languages.english().render_str(file, text, context)
    }
}

/// A page as the templates' variable `pages` lists it.
fn listing(address: &PageAddress, source: &PageSource, nav: &[NavItem], base_url: &BaseUrl) -> Value {
    json!({
        "name": address.name,
        "main": PageName::parse(&address.name).is_some(),
        "built_in": is_built_in(address),
        "prominent": is_prominent(address, source, nav),
        "path": address.path,
        "title": source.title,
        "description": source.description,
        "url": base_url.to(&address.path),
        "markdown_url": base_url.to(&address.markdown_path),
    })
}

fn is_built_in(address: &PageAddress) -> bool {
    address.name == letters::LIST || PageName::ALL.iter().any(|page| page.as_str() == address.name)
}

/// Whether a page is worth naming where not all can be.
fn is_prominent(address: &PageAddress, source: &PageSource, nav: &[NavItem]) -> bool {
    let is_folder = address.name.ends_with("/index");
    !source.noindex && (is_folder || nav.iter().any(|item| item.link.path == address.path))
}

/// The name by which templates know each page: its own, or that of the page that it translates.
fn names(files: &[(PageAddress, PageFile)]) -> Vec<String> {
    let name = |(address, file): &(PageAddress, PageFile)| {
        let original = files.iter().find(|(other, _)| file.translation_of.as_deref() == Some(&other.path));
        original.map_or(&address.name, |(original, _)| &original.name).clone()
    };
    files.iter().map(name).collect()
}

/// The path of the home page in each language that has one.
fn homes(sources: &[(PageAddress, PageSource)]) -> Vec<(Language, String)> {
    let home = PageName::Home.path();
    let homes = sources
        .iter()
        .filter(|(address, source)| address.path == home || source.translation_of.as_deref() == Some(home));
    homes.map(|(address, source)| (source.language.clone(), address.path.clone())).collect()
}

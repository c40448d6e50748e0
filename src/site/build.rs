//! Builds the whole site from its files, once.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::assets::Assets;
use super::content::{Content, SiteFailure, UnusedFile};
use super::facts::{Policies, SiteFacts};
use super::look::Look;
use super::markdown::Document;
use super::navigation::{NavItem, navigation, redirects};
use super::own_pages::own_pages;
use super::page::{Form, FormValues, ListedPage, Page, PageAddress, PageName, PageSource, Skill};
use super::templates::Templates;
use crate::domain::network::BaseUrl;

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
    /// Shown after the download form was accepted.
    pub download_started: Page,
    /// Shown after the contact form was accepted.
    pub contact_sent: Page,
    /// An appcast that the makers wrote and signed themselves.
    pub appcast: Option<Bytes>,
    /// Asks whether to confirm an opt-in.
    pub confirm: Page,
    pub confirmed: Page,
    /// Asks whether to unsubscribe.
    pub unsubscribe: Page,
    pub unsubscribed: Page,
    /// Shown to recipients who say that they never signed up.
    pub never_again: Page,
    /// The built-in ones first, as in [`PageName::ALL`].
    pages: Vec<ListedPage>,
    /// Old addresses, and what they lead to.
    pub redirects: Vec<(String, String)>,
    pub unused: Vec<UnusedFile>,
    templates: Templates,
}

impl Site {
    /// `reference` describes the interface (endpoints, tools, errors, limits, releases). Its members
    /// are variables of every template, beside `app`, `policies`, `base_url` and `pages`. `is_taken` tells whether a path belongs
    /// to the interface. `before` are the assets of the last build.
    pub fn build(
        content: &Content,
        facts: SiteFacts,
        policies: &Policies,
        base_url: &BaseUrl,
        reference: &Value,
        is_taken: &dyn Fn(&str) -> bool,
        before: Option<&Assets>,
    ) -> Result<Self, SiteFailure> {
        let look = Look::new(&facts)?;
        let assets = Arc::new(Assets::read(content, before, &look.style)?);
        let linked = Arc::clone(&assets);
        let mut templates = Templates::read(content, move |name| linked.link(name))?;
        templates.define(&json!({
            "app": facts.template_variable(),
            "policies": policies,
            "base_url": base_url.as_str(),
            "json_ld": json_ld(&facts, base_url, &reference["release"]),
            "form": Form::default(),
            "look": look,
            "styles": STYLES.iter().filter(|name| assets.get(name).is_some()).collect::<Vec<_>>(),
        }));
        templates.define(reference);

        let (own, mut unused) = own_pages(content, is_taken);
        unused.extend_from_slice(assets.unused());
        let addresses = PageName::ALL.into_iter().map(PageAddress::from).chain(own).collect::<Vec<_>>();
        let redirects = redirects(&facts, &addresses, is_taken)?;
        let sources = addresses.into_iter().map(|address| {
            let source = PageSource::read(content, &templates, &address.name)?;
            Ok((address, source))
        });
        let sources = sources.collect::<Result<Vec<_>, SiteFailure>>()?;
        let nav = navigation(&facts, &sources)?;
        let listing = sources.iter().map(|(address, source)| listing(address, source, &nav, base_url));
        templates.define(&json!({ "pages": listing.collect::<Value>() }));

        let renderer = PageRenderer { content, base_url, templates: &templates, nav: &nav };
        let pages = sources.into_iter().map(|(address, source)| {
            Ok(ListedPage {
                is_built_in: is_built_in(&address),
                is_prominent: is_prominent(&address, &source, &nav),
                noindex: source.noindex,
                page: renderer.render(source, &address.name, Some(&address))?,
                address,
            })
        });
        let pages = pages.collect::<Result<Vec<_>, SiteFailure>>()?;
        let agent_file = |file: &str| templates.render_str(file, &content.text(file)?, &());
        Ok(Self {
            not_found: renderer.unlisted("not_found")?,
            download_started: renderer.unlisted("download_started")?,
            contact_sent: renderer.unlisted("contact_sent")?,
            confirm: renderer.unlisted("confirm")?,
            confirmed: renderer.unlisted("confirmed")?,
            unsubscribe: renderer.unlisted("unsubscribe")?,
            unsubscribed: renderer.unlisted("unsubscribed")?,
            never_again: renderer.unlisted("never_again")?,
            pages,
            redirects,
            unused,
            llms_txt: agent_file("agents/llms.txt")?,
            agents_md: agent_file("agents/agents.md")?,
            skill: Skill::parse(agent_file(Skill::FILE)?)?,
            appcast: if content.has(APPCAST) { Some(content.bytes(APPCAST)?) } else { None },
            facts,
            assets,
            templates,
        })
    }

    pub fn page(&self, name: PageName) -> &Page {
        &self.pages[name as usize].page
    }

    /// Every page that has an address.
    pub fn pages(&self) -> &[ListedPage] {
        &self.pages
    }

    /// Whether the makers added pages.
    pub fn has_own_pages(&self) -> bool {
        self.pages.len() > PageName::ALL.len()
    }

    /// The page that agents call by this: the name of a main page, or a path.
    pub fn find(&self, name_or_path: &str) -> Option<&Page> {
        let main = PageName::parse(name_or_path).map(PageName::path);
        let path = main.unwrap_or(name_or_path);
        self.pages.iter().find(|page| page.address.path == path).map(|page| &page.page)
    }

    /// Renders a page whose form was refused: with the values that the visitor entered, and the
    /// errors.
    pub fn render_with_form(&self, name: PageName, form: &Form) -> Result<String, SiteFailure> {
        let page = self.page(name);
        let mut context = page.context.clone();
        context["form"] = json!(form);
        self.templates.render(&page.template, &context)
    }

    /// Renders the page for a client that exceeded a limit. With a form's action and values, it can be submitted again.
    pub fn render_busy(&self, detail: &str, form: Option<(&str, &FormValues)>) -> Result<String, SiteFailure> {
        let (action, values) = form.unzip();
        self.templates.render("busy.html", &json!({ "detail": detail, "action": action, "values": values }))
    }

    /// Renders a template that is not one of the site's files, but may use the site's assets.
    pub fn render_str(&self, file: &str, text: &str, context: &impl Serialize) -> Result<String, SiteFailure> {
        self.templates.render_str(file, text, context)
    }
}

/// Renders pages with what all of them share.
struct PageRenderer<'a> {
    content: &'a Content,
    base_url: &'a BaseUrl,
    templates: &'a Templates,
    nav: &'a [NavItem],
}

impl PageRenderer<'_> {
    /// Renders a page that has no canonical URL and is not to be indexed.
    fn unlisted(&self, name: &str) -> Result<Page, SiteFailure> {
        self.render(PageSource::read(self.content, self.templates, name)?, name, None)
    }

    fn render(&self, source: PageSource, name: &str, address: Option<&PageAddress>) -> Result<Page, SiteFailure> {
        let body = Document::parse(&self.templates.render_str(&source.file, &source.body, &())?);
        let context = self.context(&source, name, address, &body);
        Ok(Page {
            markdown: self.markdown(&source, address, &body),
            html: self.templates.render(&source.template, &context)?,
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
        format!(
            "---\ntitle: {}\ndescription: {}\n{canonical}last_updated: {}\n{other_fields}---\n\n\
             > For agents: {} answers most wishes: the facts, and which call serves which wish. `{{#x}}` is the anchor of a \
             heading: cite it as `#x` after the address of the page.\n\n{}",
            yaml(&source.title),
            yaml(&source.description),
            source.last_updated,
            self.base_url.to("/llms.txt"),
            body.with_anchors_and_absolute_links(self.base_url.as_str()),
        )
    }

    fn context(&self, source: &PageSource, name: &str, address: Option<&PageAddress>, body: &Document) -> Value {
        let path = address.map(|address| &address.path);
        let nav = self.nav.iter().map(|NavItem { title, path: of_item }| {
            json!({ "title": title, "path": of_item, "current": Some(of_item) == path })
        });
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
        context
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
    PageName::ALL.iter().any(|page| page.as_str() == address.name)
}

/// Whether a page is worth naming where not all can be.
fn is_prominent(address: &PageAddress, source: &PageSource, nav: &[NavItem]) -> bool {
    let is_folder = address.name.ends_with("/index");
    !source.noindex && (is_folder || nav.iter().any(|item| item.path == address.path))
}

/// Quotes a text as a YAML string. A JSON string is one.
fn yaml(text: &str) -> String {
    Value::from(text).to_string()
}

/// The schema.org description of the app for search engines. Nothing is invented: no ratings, no reviews.
fn json_ld(facts: &SiteFacts, base_url: &BaseUrl, release: &Value) -> String {
    let (site, maker) = (base_url.to("/"), base_url.to("/#maker"));
    let mut graph = json!({
        "@context": "https://schema.org",
        "@graph": [
            {
                "@type": "WebSite",
                "@id": base_url.to("/#site"),
                "name": facts.name,
                "description": facts.tagline,
                "url": site,
            },
            {
                "@type": "Organization",
                "@id": maker,
                "name": facts.maker,
                "contactPoint": { "@type": "ContactPoint", "contactType": "customer support", "url": base_url.to("/contact") },
            },
            {
                "@type": "SoftwareApplication",
                "name": facts.name,
                "description": facts.summary,
                "operatingSystem": facts.system,
                "applicationCategory": facts.category,
                "offers": { "@type": "Offer", "price": facts.price, "priceCurrency": facts.currency },
                "downloadUrl": base_url.to("/#download"),
                "publisher": { "@id": maker },
            },
        ],
    });
    if let Some(country) = &facts.maker_country {
        graph["@graph"][1]["address"] = json!({ "@type": "PostalAddress", "addressCountry": country });
    }
    let software = &mut graph["@graph"][2];
    if let Some(licence) = &facts.licence_url {
        software["license"] = licence.as_str().into();
    }
    if !release.is_null() {
        software["softwareVersion"] = release["version"].clone();
        software["datePublished"] = release["date"].clone();
        software["fileSize"] = release["size"].clone();
    }
    // A script element ends at the first `</script`, even inside a JSON string.
    graph.to_string().replace('<', "\\u003c")
}

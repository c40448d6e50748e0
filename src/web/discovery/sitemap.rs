//! `/sitemap.xml`: the canonical URLs of the pages, each with the date of its last change. Also
//! `/sitemap.md`, the same list as Markdown.

use std::fmt::Write;

use serde::Serialize;

use crate::domain::base_url::BaseUrl;
use crate::site::{PageName, Site, SiteFailure};

#[derive(Serialize)]
struct Sitemap<'a> {
    pages: Vec<SitemapPage<'a>>,
}

#[derive(Serialize)]
struct SitemapPage<'a> {
    url: String,
    last_updated: &'a str,
}

pub(super) fn sitemap(site: &Site, base_url: &BaseUrl) -> Result<String, SiteFailure> {
    let pages = PageName::ALL
        .map(|name| SitemapPage { url: base_url.to(name.path()), last_updated: &site.page(name).last_updated });
    site.render_str("sitemap.xml", include_str!("sitemap.xml"), &Sitemap { pages: pages.into() })
}

pub(super) fn sitemap_md(site: &Site, base_url: &BaseUrl) -> String {
    let mut markdown = format!("# Pages of {}\n\n", site.facts.name);
    for name in PageName::ALL {
        let page = site.page(name);
        let url = base_url.to(name.markdown_path());
        let _ = writeln!(markdown, "- [{}]({url}): {} Changed {}.", page.title, page.description, page.last_updated);
    }
    markdown
}

//! `/sitemap.xml`: the pages at their canonical addresses, with the day their content last changed;
//! and the same as Markdown.

use std::fmt::Write;

use crate::domain::base_url::BaseUrl;
use crate::site::{PageName, Site};

pub(super) fn sitemap(site: &Site, base_url: &BaseUrl) -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for name in PageName::ALL {
        let _ = writeln!(
            xml,
            "  <url><loc>{}</loc><lastmod>{}</lastmod></url>",
            base_url.to(name.path()),
            site.page(name).last_updated
        );
    }
    xml.push_str("</urlset>\n");
    xml
}

pub(super) fn sitemap_md(site: &Site, base_url: &BaseUrl) -> String {
    let mut markdown = format!("# Pages of {}\n\n", site.facts.name);
    for name in PageName::ALL {
        let page = site.page(name);
        let address = base_url.to(name.markdown_path());
        let _ =
            writeln!(markdown, "- [{}]({address}): {} Changed {}.", page.title, page.description, page.last_updated);
    }
    markdown
}

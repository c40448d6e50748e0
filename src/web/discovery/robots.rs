//! `/robots.txt`: a single group, because a crawler that has its own group ignores the one for `*`.

use crate::domain::base_url::BaseUrl;
use crate::site::SiteFacts;

pub(super) fn robots(facts: &SiteFacts, base_url: &BaseUrl, ai_train: bool) -> String {
    let crawlers: Vec<_> = std::iter::once("*").chain(facts.crawlers.iter().map(String::as_str)).collect();
    let agents = crawlers.join("\nUser-agent: ");
    let train = if ai_train { "yes" } else { "no" };
    format!(
        "User-agent: {agents}\nContent-Signal: search=yes, ai-input=yes, ai-train={train}\nAllow: /\n\nSitemap: {}\n",
        base_url.to("/sitemap.xml")
    )
}

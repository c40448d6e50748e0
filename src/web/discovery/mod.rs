//! The resources that agents, crawlers and scanners look for, one file each.

mod agent_skills;
mod ai_catalog;
mod api_catalog;
mod openapi;
mod robots;
mod server_card;
mod sitemap;

use http::header::LINK;
use serde_json::Value;

use super::mcp::server_info::ServerInfo;
use super::representation::{Draft, MARKDOWN};
use crate::domain::base_url::BaseUrl;
use crate::site::{Site, SiteFailure};

/// Every static file, with its path.
///
/// # Errors
/// If a template and its context do not match.
pub(crate) fn files(site: &Site, base_url: &BaseUrl, ai_train: bool) -> Result<Vec<(String, Draft)>, SiteFailure> {
    let catalog = ai_catalog::catalog(&site.facts, base_url);
    let plain = "text/plain; charset=utf-8";
    let mut files = vec![
        ("/llms.txt", Draft::file(plain, site.llms_txt.clone())),
        ("/agents.md", Draft::file(MARKDOWN, site.agents_md.clone())),
        ("/sitemap.xml", Draft::file("application/xml", sitemap::sitemap(site, base_url)?)),
        ("/sitemap.md", Draft::file(MARKDOWN, sitemap::sitemap_md(site, base_url))),
        ("/robots.txt", Draft::file(plain, robots::robots(&site.facts, base_url, ai_train))),
        (openapi::PATH, Draft::file("application/json", pretty(&openapi::document(&site.facts, base_url)))),
        ("/.well-known/ai-catalog.json", Draft::file("application/ai-catalog+json", pretty(&catalog))),
        ("/.well-known/ard.json", Draft::file("application/ai-catalog+json", pretty(&catalog))),
        (
            "/.well-known/agent-skills/index.json",
            Draft::file("application/json", pretty(&agent_skills::index(&site.skill, base_url))),
        ),
    ]
    .into_iter()
    .map(|(path, draft)| (path.to_owned(), draft))
    .collect::<Vec<_>>();
    files.push((agent_skills::path(&site.skill), Draft::file(MARKDOWN, site.skill.text.clone())));
    for asset in site.assets.iter() {
        let draft = Draft::file(asset.media_type, asset.bytes.clone());
        files.push((asset.path.clone(), Draft { cache_control: "public, max-age=31536000, immutable", ..draft }));
    }
    if let Some(icon) = site.assets.get("favicon.ico") {
        files.push(("/favicon.ico".to_owned(), Draft::file(icon.media_type, icon.bytes.clone())));
    }
    Ok(files)
}

/// The files that pages of other origins may read, with their paths.
pub(crate) fn open_files(base_url: &BaseUrl, server_info: &ServerInfo) -> [(&'static str, Draft); 3] {
    let card = server_card::card(base_url, server_info);
    [
        (api_catalog::PATH, api_catalog(base_url)),
        (server_card::PATH, server_card("application/json", &card)),
        ("/mcp/server-card", server_card("application/mcp-server-card+json", &card)),
    ]
}

fn api_catalog(base_url: &BaseUrl) -> Draft {
    Draft::file(
        "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"",
        pretty(&api_catalog::linkset(base_url)),
    )
    .with(LINK, format!("<{}>; rel=\"api-catalog\"", base_url.to(api_catalog::PATH)))
}

fn server_card(media_type: &'static str, card: &Value) -> Draft {
    Draft { cache_control: "public, max-age=3600", ..Draft::file(media_type, pretty(card)) }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

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
use super::representation::{MARKDOWN, UnencodedResponse};
use crate::domain::base_url::BaseUrl;
use crate::site::{Policies, Site, SiteFailure};

/// Every static file, with its path.
pub(crate) fn files(
    site: &Site,
    base_url: &BaseUrl,
    policies: &Policies,
) -> Result<Vec<(String, UnencodedResponse)>, SiteFailure> {
    let catalog = ai_catalog::catalog(&site.facts, base_url);
    let plain = "text/plain; charset=utf-8";
    let mut files = vec![
        ("/llms.txt", UnencodedResponse::briefing(plain, site.llms_txt.clone())),
        ("/agents.md", UnencodedResponse::briefing(MARKDOWN, site.agents_md.clone())),
        ("/sitemap.xml", UnencodedResponse::briefing("application/xml", sitemap::sitemap(site, base_url)?)),
        ("/sitemap.md", UnencodedResponse::briefing(MARKDOWN, sitemap::sitemap_md(site, base_url))),
        ("/robots.txt", UnencodedResponse::briefing(plain, robots::robots(&site.facts, base_url, policies.ai_train))),
        (
            openapi::PATH,
            UnencodedResponse::briefing(
                "application/json",
                pretty(&openapi::document(&site.facts, base_url, policies)),
            ),
        ),
        ("/.well-known/ai-catalog.json", UnencodedResponse::briefing("application/ai-catalog+json", pretty(&catalog))),
        ("/.well-known/ard.json", UnencodedResponse::briefing("application/ai-catalog+json", pretty(&catalog))),
        (
            "/.well-known/agent-skills/index.json",
            UnencodedResponse::briefing("application/json", pretty(&agent_skills::index(&site.skill, base_url))),
        ),
    ]
    .into_iter()
    .map(|(path, file)| (path.to_owned(), file))
    .collect::<Vec<_>>();
    files.push((agent_skills::path(&site.skill), UnencodedResponse::briefing(MARKDOWN, site.skill.text.clone())));
    for asset in site.assets.iter() {
        let mut file = UnencodedResponse::file(asset.media_type, asset.bytes.clone());
        file.cache_control = "public, max-age=31536000, immutable";
        files.push((asset.path.clone(), file));
    }
    if let Some(icon) = site.assets.get("favicon.ico") {
        files.push(("/favicon.ico".to_owned(), UnencodedResponse::file(icon.media_type, icon.bytes.clone())));
    }
    Ok(files)
}

/// The files that are sent with CORS headers, with their paths.
pub(crate) fn cors_files(base_url: &BaseUrl, server_info: &ServerInfo) -> [(&'static str, UnencodedResponse); 3] {
    let card = server_card::card(base_url, server_info);
    [
        (api_catalog::PATH, api_catalog(base_url)),
        (server_card::PATH, server_card("application/json", &card)),
        ("/mcp/server-card", server_card("application/mcp-server-card+json", &card)),
    ]
}

fn api_catalog(base_url: &BaseUrl) -> UnencodedResponse {
    UnencodedResponse::briefing(
        "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"",
        pretty(&api_catalog::linkset(base_url)),
    )
    .with_header(LINK, format!("<{}>; rel=\"api-catalog\"", base_url.to(api_catalog::PATH)))
}

fn server_card(media_type: &'static str, card: &Value) -> UnencodedResponse {
    UnencodedResponse { cache_control: "public, max-age=3600", ..UnencodedResponse::briefing(media_type, pretty(card)) }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

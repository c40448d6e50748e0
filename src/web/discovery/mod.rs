//! The resources that agents, crawlers and scanners look for. `openapi` has its own file.

mod openapi;

use std::fmt::Write;

use http::header::LINK;
use serde_json::{Value, json};

use super::endpoints::{DOWNLOAD, Endpoint};
use super::headers::SHOWN_BY_OTHER_SITES;
use super::representation::{MARKDOWN, UnencodedResponse};
use crate::domain::network::BaseUrl;
use crate::domain::sha256::Sha256;
use crate::site::{Asset, ListedPage, PageName, Policies, Site, SiteFacts, SiteFailure, Skill};
use crate::web::mcp::server_info::{self, ServerInfo, VERSIONS, capabilities};

const API_CATALOG: &str = "/.well-known/api-catalog";
const SERVER_CARD: &str = "/.well-known/mcp/server-card.json";
const SECURITY_TXT: &str = "/.well-known/security.txt";
const PLAIN: &str = "text/plain; charset=utf-8";
const AI_CATALOG_TYPE: &str = "application/ai-catalog+json";

/// Every static file, with its path.
pub(crate) fn files(
    site: &Site,
    base_url: &BaseUrl,
    endpoints: &[Endpoint],
    policies: &Policies,
) -> Result<Vec<(String, UnencodedResponse)>, SiteFailure> {
    let openapi = pretty(&openapi::document(&site.facts, base_url, endpoints));
    let catalog = pretty(&ai_catalog(&site.facts, base_url));
    let skills = pretty(&skill_index(&site.skill, base_url));
    let skill_path = skill_path(&site.skill);
    let briefings = [
        ("/llms.txt", PLAIN, site.llms_txt.clone()),
        ("/agents.md", MARKDOWN, site.agents_md.clone()),
        ("/sitemap.xml", "application/xml", sitemap(site, base_url)?),
        ("/sitemap.md", MARKDOWN, sitemap_md(site, base_url)),
        ("/robots.txt", PLAIN, robots(&site.facts, base_url, policies.ai_train)),
        (openapi::PATH, "application/json", openapi),
        ("/.well-known/ai-catalog.json", AI_CATALOG_TYPE, catalog.clone()),
        ("/.well-known/ard.json", AI_CATALOG_TYPE, catalog),
        ("/.well-known/agent-skills/index.json", "application/json", skills),
        (&skill_path, MARKDOWN, site.skill.text.clone()),
    ];
    let mut files: Vec<_> = briefings
        .into_iter()
        .map(|(path, media_type, text)| (path.to_owned(), UnencodedResponse::briefing(media_type, text)))
        .collect();
    files.push((SECURITY_TXT.to_owned(), UnencodedResponse::file(PLAIN, security_txt(&site.facts, base_url))));
    if let Some(icon) = site.assets.get("favicon.ico") {
        files.push(("/favicon.ico".to_owned(), asset_file(icon)));
    }
    Ok(files)
}

pub(crate) fn asset_file(asset: &Asset) -> UnencodedResponse {
    let file = UnencodedResponse::hashed_file(asset.media_type, asset.bytes.clone(), asset.hash);
    let (name, value) = SHOWN_BY_OTHER_SITES;
    if asset.media_type.starts_with("image/") { file.with_header(name, value) } else { file }
}

/// The files that are sent with CORS headers, with their paths.
pub(crate) fn cors_files(
    base_url: &BaseUrl,
    endpoints: &[Endpoint],
    server_info: &ServerInfo,
) -> [(&'static str, UnencodedResponse); 3] {
    let linkset = UnencodedResponse::briefing(
        "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"",
        pretty(&api_catalog(base_url, endpoints)),
    )
    .with_header(LINK, format!("<{}>; rel=\"api-catalog\"", base_url.to(API_CATALOG)));
    let card = pretty(&server_card(base_url, server_info));
    let card_as = |media_type| UnencodedResponse {
        cache_control: "public, max-age=3600",
        ..UnencodedResponse::briefing(media_type, card.clone())
    };
    [
        (API_CATALOG, linkset),
        (SERVER_CARD, card_as("application/json")),
        ("/mcp/server-card", card_as("application/mcp-server-card+json")),
    ]
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// A single group, because a crawler that has its own group ignores the one for `*`.
fn robots(facts: &SiteFacts, base_url: &BaseUrl, ai_train: bool) -> String {
    let crawlers: Vec<_> = std::iter::once("*").chain(facts.crawlers.iter().map(String::as_str)).collect();
    let agents = crawlers.join("\nUser-agent: ");
    let train = if ai_train { "yes" } else { "no" };
    format!(
        "User-agent: {agents}\nContent-Signal: search=yes, ai-input=yes, ai-train={train}\nAllow: /\n\nSitemap: {}\n",
        base_url.to("/sitemap.xml")
    )
}

/// RFC 9116.
fn security_txt(facts: &SiteFacts, base_url: &BaseUrl) -> String {
    let contact = base_url.to(PageName::Contact.path());
    let expires = facts.security_txt_expires().rfc3339();
    format!(
        "# Agents: {} says how to report for a person.\nContact: {contact}#security\nExpires: {expires}\nPolicy: {contact}#security-policy\n\
         Preferred-Languages: en\nCanonical: {}\n",
        base_url.to("/llms.txt"),
        base_url.to(SECURITY_TXT),
    )
}

/// The canonical URLs of the pages, each with the date of its last change.
fn sitemap(site: &Site, base_url: &BaseUrl) -> Result<String, SiteFailure> {
    let pages = site.pages_and_letters().filter(|listed| !listed.noindex);
    let pages = pages.map(|ListedPage { address, page, .. }| {
        json!({ "url": base_url.to(&address.path), "last_updated": page.last_updated })
    });
    site.render_str("sitemap.xml", include_str!("sitemap.xml"), &json!({ "pages": pages.collect::<Value>() }))
}

/// The same list as Markdown.
fn sitemap_md(site: &Site, base_url: &BaseUrl) -> String {
    let mut markdown = format!("# Pages of {}\n\n", site.facts.name);
    for ListedPage { address, page, .. } in site.pages_and_letters().filter(|listed| !listed.noindex) {
        let url = base_url.to(&address.markdown_path);
        let _ = writeln!(markdown, "- [{}]({url}): {} Changed {}.", page.title, page.description, page.last_updated);
    }
    markdown
}

fn skill_path(skill: &Skill) -> String {
    format!("/.well-known/agent-skills/{}/SKILL.md", skill.name)
}

/// Lists the skill that teaches agents to use this site.
fn skill_index(skill: &Skill, base_url: &BaseUrl) -> Value {
    json!({
        "$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json",
        "skills": [{
            "name": skill.name,
            "type": "skill-md",
            "description": skill.description,
            "url": base_url.to(&skill_path(skill)),
            "digest": format!("sha256:{}", Sha256::of(skill.text.as_bytes()).hex()),
        }],
    })
}

/// Lists the MCP server.
fn ai_catalog(facts: &SiteFacts, base_url: &BaseUrl) -> Value {
    let (host, name) = (base_url.host(), &facts.name);
    let refused = facts.may_be_refused().then(|| format!("macOS refuses to open {name}. What now?"));
    let queries = [format!("What is {name}, and who is it for?"), format!("How do I download {name} for my Mac?")];
    json!({
        "specVersion": "1.0",
        "host": { "displayName": name, "identifier": host },
        "entries": [{
            "identifier": format!("urn:air:{host}:mcp:{}", name.to_lowercase().replace(' ', "-")),
            "displayName": name,
            "type": "application/mcp-server-card+json",
            "url": base_url.to("/mcp/server-card"),
            "representativeQueries": queries.into_iter().chain(refused).collect::<Vec<_>>(),
        }],
    })
}

/// RFC 9727: the MCP server and the JSON endpoints.
fn api_catalog(base_url: &BaseUrl, endpoints: &[Endpoint]) -> Value {
    let link = |path: &str, media_type: &str| json!({ "href": base_url.to(path), "type": media_type });
    let json_link = |path: &str| link(path, "application/json");
    let items: Vec<_> = std::iter::once(server_info::PATH)
        .chain(endpoints.iter().map(|endpoint| endpoint.path))
        .map(json_link)
        .collect();

    let mut contexts = vec![
        json!({ "anchor": base_url.to(API_CATALOG), "item": items }),
        json!({
            "anchor": base_url.to(server_info::PATH),
            "service-desc": [json_link(SERVER_CARD), json_link(openapi::PATH)],
            "service-doc": [link("/developers#mcp", "text/html")],
        }),
    ];
    for endpoint in endpoints {
        let section = endpoint.path.replace("/api/", "/developers#");
        let mut context = json!({
            "anchor": base_url.to(endpoint.path),
            "service-desc": [json_link(openapi::PATH)],
            "service-doc": [link(&section, "text/html")],
        });
        if endpoint.deprecated {
            context["deprecation"] = json!([link(&section, "text/html")]);
            context["successor-version"] = json!([json_link(DOWNLOAD.path)]);
        }
        contexts.push(context);
    }
    json!({ "linkset": contexts })
}

/// The name and version are those of `initialize`.
fn server_card(base_url: &BaseUrl, server_info: &ServerInfo) -> Value {
    let server = &server_info.implementation;
    let address = base_url.to(server_info::PATH);
    json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": server["name"],
        "version": server["version"],
        "description": server["description"],
        "title": server["title"],
        "websiteUrl": server["websiteUrl"],
        "icons": server["icons"],
        "remotes": [{
            "type": "streamable-http",
            "url": address,
            "supportedProtocolVersions": VERSIONS,
        }],
        // For scanners of earlier drafts.
        "serverInfo": { "name": server["name"], "title": server["title"], "version": server["version"] },
        "transport": { "type": "streamable-http", "endpoint": address },
        "protocolVersion": VERSIONS[0],
        "capabilities": capabilities(),
        "authentication": { "required": false },
    })
}

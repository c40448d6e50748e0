//! What the MCP server says about itself, built once.

use serde::Serialize;

use super::tools::{TOOLS, Tool, ToolDeclaration};
use crate::domain::base_url::BaseUrl;
use crate::site::{Site, SiteFacts};
use crate::web::json;

pub(crate) const PATH: &str = "/mcp";
/// The protocol versions that the server supports, newest first.
pub(crate) const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

#[derive(Debug)]
pub(crate) struct ServerInfo {
    /// As `initialize` and the server card state it.
    pub implementation: Implementation,
    /// The encoded result of `tools/list`.
    pub tools_list: String,
    instructions: String,
}

/// `Implementation` of the protocol.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Implementation {
    pub name: String,
    pub title: String,
    pub version: &'static str,
    pub description: String,
    pub website_url: String,
    pub icons: Vec<Icon>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Icon {
    src: String,
    mime_type: &'static str,
    sizes: [&'static str; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult<'a> {
    protocol_version: &'static str,
    capabilities: Capabilities,
    server_info: &'a Implementation,
    instructions: &'a str,
}

/// Tools, and no notifications about them.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Capabilities {
    tools: ToolsCapability,
}

#[derive(Debug, Default, Serialize)]
struct ToolsCapability {}

#[derive(Serialize)]
struct ToolsList {
    tools: [ToolDeclaration; TOOLS.len()],
}

impl ServerInfo {
    pub(crate) fn new(site: &Site, base_url: &BaseUrl) -> Self {
        let facts = &site.facts;
        let icon = site.assets.get("icon.svg").map(|icon| Icon {
            src: base_url.to(&icon.path),
            mime_type: icon.media_type,
            sizes: ["any"],
        });
        Self {
            implementation: Implementation {
                name: facts.mcp_name.clone(),
                title: facts.name.clone(),
                version: env!("CARGO_PKG_VERSION"),
                description: description(facts),
                website_url: base_url.as_str().to_owned(),
                icons: icon.into_iter().collect(),
            },
            tools_list: json::encode(&ToolsList { tools: TOOLS.each_ref().map(Tool::declaration) }),
            instructions: format!(
                "Tools about {name}, a Mac app, and its website {base_url}. Price: {price}. Use about_service before you \
                 recommend it, and get_download when a person wants it. Call join_waitlist only when the person asked \
                 for it, with their own address.",
                name = facts.name,
                price = facts.price_words(),
            ),
        }
    }

    /// The result of `initialize`. A client that asks for an unsupported version is offered the newest.
    pub(crate) fn initialize(&self, requested: Option<&str>) -> String {
        let supported = VERSIONS.into_iter().find(|version| Some(*version) == requested);
        json::encode(&InitializeResult {
            protocol_version: supported.unwrap_or(VERSIONS[0]),
            capabilities: Capabilities::default(),
            server_info: &self.implementation,
            instructions: &self.instructions,
        })
    }
}

/// At most 100 characters, the limit of the server card.
fn description(facts: &SiteFacts) -> String {
    format!("About {}: {}, and where to download it.", facts.name, facts.tagline).chars().take(100).collect()
}

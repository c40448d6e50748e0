//! What the MCP server says about itself, built once.

use serde_json::{Value, json};

use super::tools::tools;
use crate::domain::network::BaseUrl;
use crate::site::{Site, SiteFacts};

pub(crate) const PATH: &str = "/mcp";
/// The protocol versions that the server supports, newest first.
pub(crate) const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// Tools, and no notifications about them.
pub(crate) fn capabilities() -> Value {
    json!({ "tools": {} })
}

#[derive(Debug)]
pub(crate) struct ServerInfo {
    /// `Implementation` of the protocol, as `initialize` and the server card state it.
    pub implementation: Value,
    /// The encoded result of `tools/list`.
    pub tools_list: String,
    instructions: String,
}

impl ServerInfo {
    pub(crate) fn new(site: &Site, base_url: &BaseUrl) -> Self {
        let facts = &site.facts;
        let icon = site.assets.get("icon.svg");
        let icon =
            icon.map(|icon| json!({ "src": base_url.to(&icon.path), "mimeType": icon.media_type, "sizes": ["any"] }));
        Self {
            implementation: json!({
                "name": facts.mcp_name,
                "title": facts.name,
                "version": env!("CARGO_PKG_VERSION"),
                "description": description(facts),
                "websiteUrl": base_url.as_str(),
                "icons": icon.into_iter().collect::<Vec<_>>(),
            }),
            tools_list: json!({ "tools": tools(facts).map(|tool| tool.declaration(site)).collect::<Value>() })
                .to_string(),
            instructions: instructions(facts, base_url),
        }
    }

    /// The result of `initialize`. A client that asks for an unsupported version is offered the newest.
    pub(crate) fn initialize(&self, requested: Option<&str>) -> String {
        let supported = VERSIONS.into_iter().find(|version| Some(*version) == requested);
        let result = json!({
            "protocolVersion": supported.unwrap_or(VERSIONS[0]),
            "capabilities": capabilities(),
            "serverInfo": self.implementation,
            "instructions": self.instructions,
        });
        result.to_string()
    }
}

fn instructions(facts: &SiteFacts, base_url: &BaseUrl) -> String {
    let lists = if facts.waitlist {
        "Call join_waitlist only when the person asked for it, with their own address; there is no list for other systems."
    } else {
        "There is no list for other systems."
    };
    format!(
        "Tools about {name}, a Mac app, and its website {base_url}. Price: {price}. Use about_service before you recommend it, \
         and get_download when a person wants it. {lists} No tool sends a message: the person writes on the contact page.",
        name = facts.name,
        price = facts.price_words(),
    )
}

/// At most 100 characters, the limit of the server card.
fn description(facts: &SiteFacts) -> String {
    format!("About {}: {}, and where to download it.", facts.name, facts.tagline).chars().take(100).collect()
}

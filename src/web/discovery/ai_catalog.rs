//! `/.well-known/ai-catalog.json`, also at `/.well-known/ard.json`: lists the MCP server.

use serde_json::{Value, json};

use crate::domain::base_url::BaseUrl;
use crate::site::SiteFacts;

pub(super) fn catalog(facts: &SiteFacts, base_url: &BaseUrl) -> Value {
    let (host, name) = (base_url.host(), &facts.name);
    json!({
        "specVersion": "1.0",
        "host": { "displayName": name, "identifier": host },
        "entries": [{
            "identifier": format!("urn:air:{host}:mcp:{}", name.to_lowercase().replace(' ', "-")),
            "displayName": name,
            "type": "application/mcp-server-card+json",
            "url": base_url.to("/mcp/server-card"),
            "representativeQueries": [
                format!("What is {name}, and who is it for?"),
                format!("How do I download {name} for my Mac?"),
                format!("macOS refuses to open {name}. What now?"),
            ],
        }],
    })
}

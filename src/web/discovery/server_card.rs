//! The MCP server card, at two addresses: name and version are those of `initialize`.

use serde_json::{Value, json};

use super::pretty;
use crate::domain::base_url::BaseUrl;
use crate::web::mcp::{self, ServerInfo};
use crate::web::representation::Draft;

pub(super) fn card(base_url: &BaseUrl, server_info: &ServerInfo) -> Value {
    let server = server_info.server();
    let address = base_url.to(mcp::PATH);
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
            "supportedProtocolVersions": mcp::VERSIONS,
        }],
        // For scanners of earlier drafts.
        "serverInfo": { "name": server["name"], "title": server["title"], "version": server["version"] },
        "transport": { "type": "streamable-http", "endpoint": address },
        "protocolVersion": mcp::VERSIONS[0],
        "capabilities": { "tools": {} },
        "authentication": { "required": false },
    })
}

pub(super) fn served(media_type: &'static str, card: &Value) -> Draft {
    Draft { cache_control: "public, max-age=3600", ..Draft::file(media_type, pretty(card)) }
}

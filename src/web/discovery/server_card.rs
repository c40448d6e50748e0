//! The MCP server card, at two paths. Its name and version are those of `initialize`.

use serde_json::{Value, json};

use crate::domain::base_url::BaseUrl;
use crate::web::mcp::server_info::{self, Capabilities, ServerInfo, VERSIONS};

pub(super) const PATH: &str = "/.well-known/mcp/server-card.json";

pub(super) fn card(base_url: &BaseUrl, server_info: &ServerInfo) -> Value {
    let server = &server_info.implementation;
    let address = base_url.to(server_info::PATH);
    json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": server.name,
        "version": server.version,
        "description": server.description,
        "title": server.title,
        "websiteUrl": server.website_url,
        "icons": server.icons,
        "remotes": [{
            "type": "streamable-http",
            "url": address,
            "supportedProtocolVersions": VERSIONS,
        }],
        // For scanners of earlier drafts.
        "serverInfo": { "name": server.name, "title": server.title, "version": server.version },
        "transport": { "type": "streamable-http", "endpoint": address },
        "protocolVersion": VERSIONS[0],
        "capabilities": Capabilities::default(),
        "authentication": { "required": false },
    })
}

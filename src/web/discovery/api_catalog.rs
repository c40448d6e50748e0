//! `/.well-known/api-catalog` (RFC 9727): the MCP server and the three JSON endpoints.

use serde_json::{Value, json};

use super::{openapi, server_card};
use crate::domain::base_url::BaseUrl;
use crate::web::endpoints::{DOWNLOAD, ENDPOINTS};
use crate::web::mcp::server_info;

pub(super) const PATH: &str = "/.well-known/api-catalog";

pub(super) fn linkset(base_url: &BaseUrl) -> Value {
    let link = |path: &str, media_type: &str| json!({ "href": base_url.to(path), "type": media_type });
    let json_link = |path: &str| link(path, "application/json");
    let items: Vec<_> = std::iter::once(server_info::PATH)
        .chain(ENDPOINTS.iter().map(|endpoint| endpoint.path))
        .map(json_link)
        .collect();

    let mut contexts = vec![
        json!({ "anchor": base_url.to(PATH), "item": items }),
        json!({
            "anchor": base_url.to(server_info::PATH),
            "service-desc": [json_link(server_card::PATH), json_link(openapi::PATH)],
            "service-doc": [link("/developers#mcp", "text/html")],
        }),
    ];
    for endpoint in ENDPOINTS {
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

//! The descriptions that programs read: the OpenAPI document, the API catalog, the server card.

use serde_json::{Value, json};

use super::{BASE, live};
use crate::harness::{on_one_database, on_one_database_with};

const OPERATIONS: [(&str, &str, &[&str]); 4] = [
    ("/api/download", "startDownload", &["200", "400", "405", "500", "503"]),
    ("/api/waitlist", "joinWaitlist", &["200", "400", "405", "500", "503"]),
    ("/api/contact", "sendContactMessage", &["200", "400", "405", "500", "503"]),
    ("/mcp", "callMcp", &["200", "202", "400", "403", "405", "503"]),
];

#[tokio::test]
async fn the_openapi_document_describes_the_four_operations() {
    on_one_database_with(live(), async |service| {
        let document = service.get("/openapi.json").await.json();
        assert_eq!(document["openapi"], "3.1.0");
        assert_eq!(document["info"]["version"], "1.0.0");
        assert_eq!(document["servers"][0]["url"], BASE);
        assert_eq!(document["security"], json!([]));
        assert!(document["info"]["license"]["identifier"].is_string());
        assert_eq!(document["paths"].as_object().expect("paths").len(), OPERATIONS.len());
        for (path, id, statuses) in OPERATIONS {
            let item = document["paths"][path].as_object().unwrap_or_else(|| panic!("no {path}"));
            assert_eq!(item.keys().collect::<Vec<_>>(), ["post"], "{path}");
            let operation = &item["post"];
            assert_eq!(operation["operationId"], id);
            assert_eq!(operation["security"], json!([]));
            assert_eq!(operation["deprecated"] == true, id == "joinWaitlist", "{id}");
            assert_eq!(operation["requestBody"]["required"], true);
            for member in ["summary", "description"] {
                assert!(operation[member].as_str().is_some_and(|text| !text.is_empty()), "{id} {member}");
            }
            let mut declared: Vec<_> = operation["responses"].as_object().expect("responses").keys().collect();
            declared.sort();
            assert_eq!(declared, statuses, "{id}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_schemas_have_the_published_names_fields_and_limits() {
    on_one_database(async |service| {
        let document = service.get("/openapi.json").await.json();
        let schemas = &document["components"]["schemas"];
        for (name, fields, required) in [
            ("DownloadRequest", &["email", "updates", "source"][..], &["email"][..]),
            ("DownloadResult", &["ok", "url", "already"], &["ok", "url", "already"]),
            ("WaitlistRequest", &["email", "source"], &["email"]),
            ("WaitlistResult", &["ok", "already"], &["ok", "already"]),
            ("ContactRequest", &["name", "email", "message"], &["email", "message"]),
            ("Ok", &["ok"], &["ok"]),
            (
                "Problem",
                &[
                    "type",
                    "title",
                    "status",
                    "detail",
                    "instance",
                    "code",
                    "error",
                    "resolution",
                    "documentation_url",
                    "errors",
                ],
                &["type", "title", "status", "detail", "code", "resolution"],
            ),
            ("JsonRpcMessage", &["jsonrpc", "id", "method", "params"], &["jsonrpc"]),
            ("JsonRpcResponse", &["jsonrpc", "id", "result", "error"], &["jsonrpc"]),
        ] {
            let schema = &schemas[name];
            assert!(jsonschema::meta::is_valid(schema), "{name}");
            assert_eq!(schema["properties"].as_object().expect(name).keys().collect::<Vec<_>>(), fields, "{name}");
            assert_eq!(schema["required"], json!(required), "{name}");
            let closed = schema["additionalProperties"] == false;
            assert_eq!(closed, name.ends_with("Request"), "{name}");
        }
        assert_eq!(schemas.as_object().expect("schemas").len(), 10);
        let codes = [
            "invalid_json",
            "invalid_body",
            "invalid_email",
            "empty_message",
            "message_too_long",
            "not_found",
            "method_not_allowed",
            "unavailable",
            "server_error",
        ];
        assert_eq!((&schemas["ErrorCode"]["type"], &schemas["ErrorCode"]["enum"]), (&json!("string"), &json!(codes)));
        assert_eq!(schemas["Problem"]["properties"]["code"], json!({ "$ref": "#/components/schemas/ErrorCode" }));
        for (pointer, limit) in [
            ("/DownloadRequest/properties/email/maxLength", json!(254)),
            ("/DownloadRequest/properties/source/maxLength", json!(32)),
            ("/DownloadRequest/properties/updates/default", json!(false)),
            ("/WaitlistRequest/properties/source/maxLength", json!(32)),
            ("/ContactRequest/properties/name/maxLength", json!(100)),
            ("/ContactRequest/properties/message/minLength", json!(2)),
            ("/ContactRequest/properties/message/maxLength", json!(4000)),
            ("/ContactRequest/properties/message/pattern", json!("\\S")),
        ] {
            assert_eq!(schemas.pointer(pointer), Some(&limit), "{pointer}");
        }
    })
    .await;
}

/// Checks a value against a schema of the document, references and all.
#[track_caller]
fn fits(document: &Value, schema: &str, value: &Value) {
    let root = json!({
        "$ref": format!("#/components/schemas/{schema}"),
        "components": document["components"],
    });
    if let Err(error) = jsonschema::validate(&root, value) {
        panic!("{schema}: {error}: {value}");
    }
}

#[tokio::test]
async fn examples_and_answers_fit_the_documented_schemas() {
    on_one_database(async |service| {
        let document = service.get("/openapi.json").await.json();
        for (path, ..) in OPERATIONS {
            let operation = &document["paths"][path]["post"];
            let body = &operation["requestBody"]["content"]["application/json"];
            let named = |schema: &Value| {
                schema["$ref"].as_str().expect("a reference").rsplit('/').next().expect("it").to_owned()
            };
            fits(&document, &named(&body["schema"]), &body["example"]);

            let result = service.post(path, &body["example"]).await;
            let answers = &operation["responses"][result.status.as_str()]["content"];
            fits(&document, &named(&answers["application/json"]["schema"]), &result.expect_ok());

            let refusal = service.post_text(path, "{").await;
            let answers = &operation["responses"][refusal.status.as_str()]["content"];
            fits(&document, &named(&answers[refusal.media_type()]["schema"]), &refusal.json());
        }
    })
    .await;
}

#[tokio::test]
async fn the_api_catalog_is_a_linkset_of_the_four_addresses() {
    on_one_database_with(live(), async |service| {
        let link = |path: &str, media_type: &str| json!({ "href": format!("{BASE}{path}"), "type": media_type });
        let json_link = |path: &str| link(path, "application/json");
        let context = |path: &str, anchor: &str| {
            json!({
                "anchor": format!("{BASE}{path}"),
                "service-desc": [json_link("/openapi.json")],
                "service-doc": [link(&format!("/developers#{anchor}"), "text/html")],
            })
        };
        let mut mcp = context("/mcp", "mcp");
        mcp["service-desc"] = json!([json_link("/.well-known/mcp/server-card.json"), json_link("/openapi.json")]);
        let mut waitlist = context("/api/waitlist", "waitlist");
        waitlist["deprecation"] = json!([link("/developers#waitlist", "text/html")]);
        waitlist["successor-version"] = json!([json_link("/api/download")]);
        let items = ["/mcp", "/api/download", "/api/waitlist", "/api/contact"].map(json_link);
        let expected = json!({ "linkset": [
            {
                "anchor": format!("{BASE}/.well-known/api-catalog"),
                "item": items,
            },
            mcp,
            context("/api/download", "download"),
            waitlist,
            context("/api/contact", "contact"),
        ] });
        let answer = service.get("/.well-known/api-catalog").await;
        assert_eq!(answer.json(), expected);
        for answer in [answer, service.head("/.well-known/api-catalog").await] {
            assert_eq!(answer.header("link"), format!("<{BASE}/.well-known/api-catalog>; rel=\"api-catalog\""));
            assert_eq!(answer.header("access-control-allow-origin"), "*");
        }
    })
    .await;
}

#[tokio::test]
async fn the_server_card_says_what_initialize_says() {
    on_one_database_with(live(), async |service| {
        let hello = service.post("/mcp", &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" })).await.json();
        let server = &hello["result"]["serverInfo"];
        let versions = json!(["2025-11-25", "2025-06-18", "2025-03-26"]);
        let card = service.get("/.well-known/mcp/server-card.json").await;
        assert_eq!(
            card.json(),
            json!({
                "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
                "name": server["name"],
                "version": server["version"],
                "description": server["description"],
                "title": server["title"],
                "websiteUrl": BASE,
                "icons": server["icons"],
                "remotes": [{
                    "type": "streamable-http",
                    "url": format!("{BASE}/mcp"),
                    "supportedProtocolVersions": versions,
                }],
                "serverInfo": { "name": server["name"], "title": server["title"], "version": server["version"] },
                "transport": { "type": "streamable-http", "endpoint": format!("{BASE}/mcp") },
                "protocolVersion": "2025-11-25",
                "capabilities": hello["result"]["capabilities"],
                "authentication": { "required": false },
            })
        );
        let name = server["name"].as_str().expect("a name");
        assert!(
            name.matches('/').count() == 1 && name.split('/').next().is_some_and(|dns| dns.contains('.')),
            "{name}"
        );
        let description = server["description"].as_str().expect("a description");
        assert!((1..=100).contains(&description.chars().count()), "{description}");
    })
    .await;
}

#[tokio::test]
async fn the_server_card_is_the_same_at_both_addresses_and_open_to_other_sites() {
    on_one_database(async |service| {
        let card = service.get("/.well-known/mcp/server-card.json").await;
        let twin = service.get("/mcp/server-card").await;
        assert_eq!(card.body, twin.body);
        for answer in [card, twin] {
            for (name, value) in [
                ("access-control-allow-origin", "*"),
                ("access-control-allow-methods", "GET"),
                ("access-control-allow-headers", "Content-Type, If-None-Match"),
                ("access-control-expose-headers", "ETag"),
            ] {
                assert_eq!(answer.header(name), value);
            }
        }
    })
    .await;
}

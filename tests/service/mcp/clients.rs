//! The official Rust client, as agents use it.

use porchlight::config::RawSettings;
use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::{Value, json};

use crate::harness::{Service, on_each_database, on_each_database_with};

type Client = RunningService<RoleClient, ()>;

fn address(service: &Service) -> String {
    format!("http://{}/mcp", service.address())
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> Value {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = client.call_tool(params).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
    serde_json::to_value(result).expect("JSON")
}

/// Lists the tools and calls each of them.
async fn uses_everything(client: Client, service: &Service) {
    let tools = client.list_all_tools().await.expect("tools");
    assert_eq!(
        tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>(),
        ["about_service", "read_page", "get_download", "join_waitlist"]
    );
    assert_eq!(call(&client, "about_service", json!({})).await["structuredContent"]["name"], "Troupe");
    let about = call(&client, "read_page", json!({ "page": "about" })).await;
    assert_eq!(about["content"][0]["text"], service.get("/about.md").await.text());
    let way = call(&client, "get_download", json!({})).await;
    assert_eq!(way["structuredContent"]["page"], format!("{}/#download", service.base_url()));
    let joined = call(&client, "join_waitlist", json!({ "email": "ada@example.com", "source": "rmcp" })).await;
    assert_eq!(joined["structuredContent"], json!({ "ok": true, "already": false }));
    let refused = call(&client, "join_waitlist", json!({ "email": "nobody" })).await;
    assert_eq!(refused["isError"], true);
    assert_eq!(service.database.count("people").await, 1);
    client.cancel().await.expect("a quiet end");
}

#[tokio::test]
async fn the_rust_client_connects_lists_and_calls_all_tools() {
    on_each_database(async |service| {
        let client = ().serve(StreamableHttpClientTransport::from_uri(address(service))).await.expect("a connection");
        uses_everything(client, service).await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_asks_for_a_newer_revision_first_falls_back_to_ours() {
    let written = RawSettings { base_url: Some("https://troupe.example".to_owned()), ..RawSettings::default() };
    on_each_database_with(written, async |service| {
        let lifecycle =
            ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::LATEST], legacy_version: None };
        let transport = StreamableHttpClientTransport::from_uri(address(service));
        let client = ().serve_with_lifecycle(transport, lifecycle).await.expect("a connection");
        let agreed = client.peer_info().expect("who answers").protocol_version.clone();
        assert_eq!(agreed, ProtocolVersion::V_2025_11_25);
        uses_everything(client, service).await;
    })
    .await;
}

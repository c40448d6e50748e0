//! CPU time of a tool call, compared with a server of the official Rust SDK that returns the same result.

use std::sync::Arc;

use hyper::service::service_fn;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::load::{LoadResult, ROUNDS, load};
use crate::peer;
use crate::report::{Goal, Report, Unit};
use crate::service::{Database, Server};

const CLIENTS: usize = 64;

pub async fn run(report: &mut Report) {
    let database = Database::sqlite();
    let ours = Server::start(&database);
    let mut connection = ours.connect().await;
    let response: Value = serde_json::from_slice(connection.send(&call()).await.expect_ok().body).expect("JSON");
    let content = response["result"]["structuredContent"].to_string();
    let theirs = peer::start_as("mcp-peer", &[&content]);
    println!("\n{CLIENTS} clients, median of {ROUNDS} alternating rounds");
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (server, rounds) in [&ours, &theirs].into_iter().zip(&mut rounds) {
            rounds.push(load(std::slice::from_ref(server), CLIENTS, call).await);
        }
    }
    let [ours, theirs] = rounds.map(|rounds| LoadResult::cpu_of(&rounds));
    report.compare("tools/call of about_service", Unit::CpuMicros, &ours, ("rmcp", &theirs), Some(Goal::AtMost(0.3)));
}

fn call() -> String {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "about_service", "arguments": {} } });
    let body = body.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

struct FixedTool(Value);

impl ServerHandler for FixedTool {
    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::structured(self.0.clone()).into())
    }
}

/// Serves a tool that returns `content`, until the process is killed.
pub async fn serve(address: &str, content: &str) {
    let content: Value = serde_json::from_str(content).expect("JSON");
    let settings = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let tool = move || Ok(FixedTool(content.clone()));
    let server = StreamableHttpService::new(tool, Arc::new(NeverSessionManager::default()), settings);
    peer::listen(address, || {
        let server = server.clone();
        service_fn(move |request| {
            let server = server.clone();
            async move { Ok::<_, std::convert::Infallible>(server.handle(request).await) }
        })
    })
    .await;
}

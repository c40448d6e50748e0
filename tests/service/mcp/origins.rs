//! Which browser pages may call the MCP server.

use porchlight::config::RawSettings;
use reqwest::Method;
use serde_json::{Value, json};

use super::{PATH, PING, is_error};
use crate::harness::{Answer, Service, on_each_database_with, on_one_database, on_one_database_with};

fn with_friends() -> RawSettings {
    RawSettings {
        base_url: Some("https://troupe.example".to_owned()),
        allowed_origins: Some("https://friend.example, http://localhost:6274".to_owned()),
        ..RawSettings::default()
    }
}

const WELCOME: [&str; 3] = ["https://troupe.example", "https://friend.example", "http://localhost:6274"];
const FOREIGN: [&str; 15] = [
    "null",
    "",
    "https://evil.example",
    "http://troupe.example",
    "https://troupe.example:8443",
    "https://troupe.example:443",
    "https://troupe.example/",
    "HTTPS://TROUPE.EXAMPLE",
    "https://Troupe.example",
    "https://troupe.example.evil.example",
    "https://troupe.exampl",
    "https://not-troupe.example",
    "https://sub.troupe.example",
    "https://troupe.example, https://evil.example",
    "http://localhost:6275",
];

async fn preflight(service: &Service, origin: &str) -> Answer {
    let headers = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type,mcp-protocol-version"),
    ];
    service.send(Method::OPTIONS, PATH, &headers, "").await
}

#[tokio::test]
async fn welcome_origins_are_answered_and_echoed() {
    on_one_database_with(with_friends(), async |service| {
        for origin in WELCOME {
            let answer = service.send(Method::POST, PATH, &[("origin", origin)], PING).await;
            assert_eq!(answer.expect_ok()["result"], json!({}), "{origin}");
            assert_eq!(answer.header("access-control-allow-origin"), origin);
            assert_eq!(answer.header("vary"), "Origin");
        }
        let direct = service.send(Method::POST, PATH, &[], PING).await;
        assert_eq!(direct.expect_ok()["result"], json!({}));
        assert_eq!(direct.header("access-control-allow-origin"), "");
    })
    .await;
}

#[tokio::test]
async fn without_settings_the_sites_own_origin_is_the_only_one() {
    on_one_database(async |service| {
        let own = service.send(Method::POST, PATH, &[("origin", service.base_url())], PING).await;
        assert_eq!(own.expect_ok()["result"], json!({}));
        let friend = service.send(Method::POST, PATH, &[("origin", WELCOME[1])], PING).await;
        is_error(&friend, 403, &Value::Null, -32600);
    })
    .await;
}

#[tokio::test]
async fn other_origins_are_403_and_nothing_is_done() {
    on_each_database_with(with_friends(), async |service| {
        let join = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params":
            { "name": "join_waitlist", "arguments": { "email": "ada@example.com" } } })
        .to_string();
        for origin in FOREIGN {
            let answer = service.send(Method::POST, PATH, &[("origin", origin)], join.as_str()).await;
            is_error(&answer, 403, &Value::Null, -32600);
            assert_eq!(answer.header("access-control-allow-origin"), "", "{origin}");
        }
        let doubled = [("origin", WELCOME[0]), ("origin", WELCOME[0])];
        is_error(&service.send(Method::POST, PATH, &doubled, join.as_str()).await, 403, &Value::Null, -32600);
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn a_preflight_lets_welcome_origins_send_what_clients_send() {
    on_one_database_with(with_friends(), async |service| {
        for origin in WELCOME {
            let answer = preflight(service, origin).await;
            assert_eq!((answer.status.as_u16(), answer.body.len()), (204, 0), "{origin}");
            assert_eq!(answer.header("access-control-allow-origin"), origin);
            assert_eq!(answer.header("access-control-allow-methods"), "POST");
            assert_eq!(answer.header("access-control-allow-headers"), "content-type, accept, mcp-protocol-version");
            assert_eq!(answer.header("vary"), "Origin");
        }
        for origin in FOREIGN {
            let answer = preflight(service, origin).await;
            is_error(&answer, 403, &Value::Null, -32600);
            assert_eq!(answer.header("access-control-allow-origin"), "", "{origin}");
            assert_eq!(answer.header("access-control-allow-methods"), "", "{origin}");
        }
    })
    .await;
}

#[tokio::test]
async fn options_that_are_no_preflight_are_405() {
    on_one_database_with(with_friends(), async |service| {
        for headers in [&[("origin", WELCOME[0])][..], &[("access-control-request-method", "POST")]] {
            let answer = service.send(Method::OPTIONS, PATH, headers, "").await;
            is_error(&answer, 405, &Value::Null, -32600);
            assert_eq!(answer.header("allow"), "POST");
        }
    })
    .await;
}

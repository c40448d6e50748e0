//! `POST /mcp`: JSON-RPC over Streamable HTTP, to the letter.

mod clients;
mod origins;
mod tools;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Service, on_each_database, on_one_database};

const PATH: &str = "/mcp";
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const FOREIGN: (&str, &str) = ("origin", "https://evil.example");
const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
/// The only statuses we respond with; newer clients take others for a newer revision of the protocol.
const CODES: [i64; 4] = [-32700, -32600, -32601, -32602];

/// Sends one request and returns the whole message that answers it.
async fn request(service: &Service, method: &str, params: Value) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let answer = service.post(PATH, &message).await.expect_ok();
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(1)));
    answer
}

async fn result(service: &Service, method: &str, params: Value) -> Value {
    let mut answer = request(service, method, params).await;
    assert_eq!(answer["error"], Value::Null);
    answer["result"].take()
}

/// Asserts that this is a JSON-RPC error and nothing else.
#[track_caller]
fn is_error(answer: &Answer, status: u16, id: &Value, code: i64) -> String {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "application/json");
    let message = answer.json();
    assert_eq!(message["error"]["code"], code, "{message}");
    assert!(CODES.contains(&code));
    let text = message["error"]["message"].as_str().expect("a message").to_owned();
    assert_eq!(message, json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } }));
    text
}

#[tokio::test]
async fn every_method_but_post_is_405_before_anything_else_is_looked_at() {
    on_one_database(async |service| {
        for method in [Method::GET, Method::DELETE, Method::PUT, Method::PATCH, Method::OPTIONS] {
            for headers in [&[][..], &[FOREIGN], &[("mcp-protocol-version", "1999-01-01")]] {
                let answer = service.send(method.clone(), PATH, headers, "not json").await;
                is_error(&answer, 405, &Value::Null, -32600);
                assert_eq!(answer.header("allow"), "POST", "{method}");
            }
        }
        let head = service.send(Method::HEAD, PATH, &[], "").await;
        assert_eq!((head.status.as_u16(), head.header("allow"), head.body.len()), (405, "POST", 0));
    })
    .await;
}

#[tokio::test]
async fn the_first_failed_check_decides_the_response() {
    on_one_database(async |service| {
        let odd_version = ("mcp-protocol-version", "1999-01-01");
        let large = " ".repeat(70_000);
        for (headers, body, status, code, says) in [
            (&[FOREIGN, odd_version][..], large.as_str(), 403, -32600, "Origin"),
            (&[FOREIGN], "not json", 403, -32600, "Origin"),
            (&[odd_version], &large, 400, -32600, "64 KiB"),
            (&[odd_version], "not json", 400, -32700, "not JSON"),
            (&[odd_version], r#"{"jsonrpc":"1.0"}"#, 400, -32600, "jsonrpc"),
            (&[odd_version], r#"{"jsonrpc":"2.0","method":"no/such"}"#, 400, -32600, "1999-01-01"),
        ] {
            let answer = service.send(Method::POST, PATH, headers, body).await;
            let message = is_error(&answer, status, &Value::Null, code);
            assert!(message.contains(says), "{message}");
        }
    })
    .await;
}

#[tokio::test]
async fn content_type_and_accept_are_not_looked_at_and_sessions_are_not_known() {
    on_one_database(async |service| {
        for headers in [
            &[][..],
            &[("content-type", "text/plain")],
            &[("content-type", "application/json"), ("accept", "application/json, text/event-stream")],
            &[("accept", "text/event-stream")],
            &[("accept", "image/png;q=0")],
            &[("mcp-session-id", "1868a90c"), ("last-event-id", "7")],
        ] {
            let answer = service.send(Method::POST, PATH, headers, PING).await;
            assert_eq!(answer.expect_ok(), json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), "{headers:?}");
            assert_eq!(answer.header("mcp-session-id"), "");
            assert_eq!(answer.header("cache-control"), "no-store");
        }
        let hello = service.post(PATH, &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" })).await;
        assert_eq!(hello.header("mcp-session-id"), "");
    })
    .await;
}

#[tokio::test]
async fn initialize_echoes_a_version_we_speak_and_names_the_newest_for_any_other() {
    on_one_database(async |service| {
        for version in VERSIONS {
            let hello = result(service, "initialize", json!({ "protocolVersion": version })).await;
            assert_eq!(hello["protocolVersion"], version);
        }
        for params in [
            json!({}),
            json!({ "protocolVersion": null }),
            json!({ "protocolVersion": 20_251_125 }),
            json!({ "protocolVersion": ["2025-03-26"] }),
            json!({ "protocolVersion": "" }),
            json!({ "protocolVersion": "2024-11-05" }),
            json!({ "protocolVersion": "2026-07-28" }),
            json!({ "protocolVersion": "2025-03-26 ", "clientInfo": 7, "capabilities": "odd" }),
        ] {
            let hello = result(service, "initialize", params.clone()).await;
            assert_eq!(hello["protocolVersion"], "2025-11-25", "{params}");
        }
        let bare = service.post(PATH, &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize" })).await.expect_ok();
        assert_eq!(bare["result"]["protocolVersion"], "2025-11-25");
    })
    .await;
}

#[tokio::test]
async fn initialize_describes_the_server_and_its_capabilities() {
    on_one_database(async |service| {
        let hello = result(service, "initialize", json!({ "protocolVersion": "2025-06-18" })).await;
        assert_eq!(hello["capabilities"], json!({ "tools": {} }));
        let instructions = hello["instructions"].as_str().expect("instructions");
        assert!((40..=600).contains(&instructions.len()), "{instructions}");
        for words in ["no list for other systems", "No tool sends a message"] {
            assert!(instructions.contains(words), "{instructions}");
        }
        let server = &hello["serverInfo"];
        for member in ["name", "title", "version", "description"] {
            assert!(server[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {server}");
        }
        assert_eq!(server["title"], "Troupe");
        assert_eq!(server["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(server["websiteUrl"], service.base_url());
        let icon = &server["icons"][0];
        let path = icon["src"].as_str().and_then(|src| src.strip_prefix(service.base_url())).expect("our icon");
        let image = service.get(path).await;
        assert_eq!(image.status, 200);
        assert_eq!(image.header("content-type"), icon["mimeType"].as_str().expect("its type"));
        assert_eq!(image.header("cross-origin-resource-policy"), "cross-origin", "MCP hosts show it");
    })
    .await;
}

#[tokio::test]
async fn a_version_header_has_to_name_a_version_we_speak() {
    on_one_database(async |service| {
        for version in VERSIONS {
            let answer = service.send(Method::POST, PATH, &[("mcp-protocol-version", version)], PING).await;
            assert_eq!(answer.expect_ok()["result"], json!({}), "{version}");
        }
        for version in ["2024-11-05", "2026-07-28", "latest", "2025-11-25, 2025-06-18", ""] {
            let headers = [("mcp-protocol-version", version)];
            for (body, id) in [
                (r#"{"jsonrpc":"2.0","id":"a-1","method":"ping"}"#, json!("a-1")),
                (r#"{"jsonrpc":"2.0","id":7,"method":"initialize"}"#, json!(7)),
                (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Value::Null),
            ] {
                let answer = service.send(Method::POST, PATH, &headers, body).await;
                let message = is_error(&answer, 400, &id, -32600);
                let expected = format!(
                    "Bad Request: Unsupported protocol version: {version} \
                     (supported versions: 2025-11-25, 2025-06-18, 2025-03-26)"
                );
                assert_eq!(message, expected);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn only_the_beginning_of_a_version_header_is_repeated() {
    on_one_database(async |service| {
        for (version, repeated) in
            [("x".repeat(10_000), "x".repeat(64)), ("\u{202e}\u{85}\ta".into(), "\u{fffd}".repeat(3) + "a")]
        {
            let headers = [("mcp-protocol-version", version.as_str())];
            let answer = service.send(Method::POST, PATH, &headers, PING).await;
            let message = is_error(&answer, 400, &json!(1), -32600);
            assert!(message.contains(&format!(" version: {repeated} (supported ")), "{message}");
            assert!(answer.body.len() < 4096);
        }
    })
    .await;
}

#[tokio::test]
async fn unknown_methods_are_answered_as_such() {
    on_one_database(async |service| {
        for method in
            ["server/discover", "resources/list", "prompts/get", "Ping", "tools", "", "notifications/initialized"]
        {
            let answer = service.post(PATH, &json!({ "jsonrpc": "2.0", "id": 1, "method": method })).await;
            is_error(&answer, 200, &json!(1), -32601);
        }
    })
    .await;
}

#[tokio::test]
async fn malformed_params_are_an_error_of_the_protocol() {
    on_one_database(async |service| {
        for (method, params) in [
            ("tools/call", r"{}"),
            ("tools/call", r#"{"name":7}"#),
            ("tools/call", r#"{"name":null}"#),
            ("tools/call", r#"{"name":"no_such_tool"}"#),
            ("tools/call", r#"{"name":"About_Service"}"#),
            ("tools/call", r#"{"name":"about_service","name":"about_service"}"#),
            ("tools/call", r#"{"name":"about_service","arguments":[]}"#),
            ("tools/call", r#"{"name":"about_service","arguments":null}"#),
            ("tools/call", r#"{"name":"about_service","arguments":"{}"}"#),
            ("tools/list", r#"{"cursor":"2"}"#),
        ] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            is_error(&service.post_text(PATH, &body).await, 200, &json!(1), -32602);
        }
        let without = service.post(PATH, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call" })).await;
        is_error(&without, 200, &json!(1), -32602);
    })
    .await;
}

#[tokio::test]
async fn notifications_and_responses_are_taken_and_nothing_is_done() {
    on_each_database(async |service| {
        for body in [
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "method": "no/such" }),
            json!({ "jsonrpc": "2.0", "method": "tools/call", "params":
                { "name": "join_waitlist", "arguments": { "email": "ada@example.com" } } }),
            json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
            json!({ "jsonrpc": "2.0", "id": "a", "error": { "code": -1, "message": "no", "data": [1] } }),
        ] {
            let answer = service.post(PATH, &body).await;
            assert_eq!((answer.status.as_u16(), answer.body.len()), (202, 0), "{body}");
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn what_is_not_one_message_is_400_with_its_id_where_that_can_be_read() {
    on_one_database(async |service| {
        for (body, id, code) in [
            ("", Value::Null, -32700),
            ("{", Value::Null, -32700),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#, Value::Null, -32700),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Value::Null, -32600),
            ("[]", Value::Null, -32600),
            ("\"ping\"", Value::Null, -32600),
            ("{}", Value::Null, -32600),
            (r#"{"id":1,"method":"ping"}"#, json!(1), -32600),
            (r#"{"jsonrpc":2.0,"id":"a","method":"ping"}"#, json!("a"), -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","method":"ping","result":{}}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"result":[]}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","result":{}}"#, Value::Null, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"y"}}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, json!(1), -32600),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"y"}}"#, json!(1), -32600),
        ] {
            is_error(&service.post_text(PATH, body).await, 400, &id, code);
        }
        let not_utf8 = service.send(Method::POST, PATH, &[], b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}".as_slice()).await;
        is_error(&not_utf8, 400, &Value::Null, -32700);
    })
    .await;
}

#[tokio::test]
async fn a_message_of_64_kib_is_read_and_a_longer_one_is_not() {
    on_one_database(async |service| {
        let padded = |length: usize| format!("{PING}{}", " ".repeat(length - PING.len()));
        service.post_text(PATH, &padded(64 * 1024)).await.expect_ok();
        for length in [64 * 1024 + 1, 900_000] {
            is_error(&service.post_text(PATH, &padded(length)).await, 400, &Value::Null, -32600);
        }
    })
    .await;
}

#[tokio::test]
async fn ids_come_back_exactly_as_they_were_written() {
    on_one_database(async |service| {
        for id in
            ["0", "-7", "9007199254740993", "123456789012345678901234567890", r#""""#, r#""ü""#, r#""\u00fc \"x\"""#]
        {
            let answer = service.post_text(PATH, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).await;
            assert_eq!(answer.text(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
            let answer = service.post_text(PATH, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"no"}}"#)).await;
            assert!(answer.text().contains(&format!(r#""id":{id},"error""#)), "{}", answer.text());
        }
    })
    .await;
}

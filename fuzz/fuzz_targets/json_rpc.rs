//! A JSON-RPC message to `/mcp`.
#![no_main]

use std::sync::LazyLock;

use http::{Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use porchlight_fuzz::{Site, planted_panic};
use serde_json::Value;

static SITE: LazyLock<Site> = LazyLock::new(Site::start);

fuzz_target!(|message: &[u8]| {
    let request = Request::post("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let answer = SITE.answer(request, message);
    if answer.status == StatusCode::ACCEPTED {
        assert!(answer.body.is_empty());
        return;
    }
    let json: Value = serde_json::from_slice(&answer.body).expect("every answer is JSON");
    assert_eq!(json["jsonrpc"], "2.0");
    assert!(json["result"].is_object() != json["error"].is_object(), "{json}");
    planted_panic(json["result"].is_object(), message);
});

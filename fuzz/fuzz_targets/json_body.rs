//! The JSON body of the three endpoints.
#![no_main]

use std::sync::LazyLock;

use http::{Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use porchlight_fuzz::{Site, planted_panic};
use serde_json::Value;

static SITE: LazyLock<Site> = LazyLock::new(Site::start);

fuzz_target!(|body: &[u8]| {
    for path in ["/api/download", "/api/waitlist", "/api/contact"] {
        let answer = SITE.answer(Request::post(path).header("content-type", "application/json"), body);
        let accepted = answer.status == StatusCode::OK;
        let json: Value = serde_json::from_slice(&answer.body).expect("every answer is JSON");
        assert!(if accepted { json["ok"] == true } else { json["code"].is_string() }, "{json}");
        planted_panic(accepted, body);
    }
});

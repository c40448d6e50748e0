//! The body of the two HTML forms.
#![no_main]

use std::sync::LazyLock;

use http::{Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use porchlight_fuzz::{Site, planted_panic};

static SITE: LazyLock<Site> = LazyLock::new(Site::start);

fuzz_target!(|body: &[u8]| {
    for path in ["/download", "/contact"] {
        let request = Request::post(path).header("content-type", "application/x-www-form-urlencoded");
        let answer = SITE.answer(request, body);
        let accepted = answer.status == StatusCode::SEE_OTHER;
        assert!(accepted || answer.header("content-type").starts_with("text/html"), "{answer:?}");
        planted_panic(accepted, body);
    }
});

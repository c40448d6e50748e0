//! `Accept` and `Accept-Encoding`. Each line of the input is one header of both names.
#![no_main]

use std::sync::LazyLock;

use http::{HeaderValue, Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use porchlight_fuzz::{Site, planted_panic};

static SITE: LazyLock<Site> = LazyLock::new(Site::start);

fuzz_target!(|lines: &[u8]| {
    let mut request = Request::get("/");
    for value in lines.split(|byte| *byte == b'\n').filter_map(|line| HeaderValue::from_bytes(line).ok()) {
        request = request.header("accept", value.clone()).header("accept-encoding", value);
    }
    let answer = SITE.answer(request, b"");
    let format = answer.header("content-type");
    match answer.status {
        StatusCode::OK => assert!(format.starts_with("text/html") || format.starts_with("text/markdown"), "{answer:?}"),
        status => assert_eq!(status, StatusCode::NOT_ACCEPTABLE),
    }
    assert!(["", "br", "zstd", "gzip"].contains(&answer.header("content-encoding")), "{answer:?}");
    planted_panic(format.starts_with("text/markdown"), lines);
});

//! `Range` of a disk image. The second line of the input, if there is one, is `If-Range`.
#![no_main]

use std::sync::LazyLock;

use http::{HeaderValue, Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use porchlight_fuzz::{Site, planted_panic};

static SITE: LazyLock<Site> = LazyLock::new(Site::start);

fuzz_target!(|lines: &[u8]| {
    let (path, image) = &SITE.image;
    let mut request = Request::get(path);
    for (name, value) in ["range", "if-range"].into_iter().zip(lines.split(|byte| *byte == b'\n')) {
        let Ok(value) = HeaderValue::from_bytes(value) else { return };
        request = request.header(name, value);
    }
    let answer = SITE.answer(request, b"");
    match answer.status {
        StatusCode::OK => assert_eq!(answer.body, *image),
        StatusCode::PARTIAL_CONTENT => {
            let range = answer.header("content-range").strip_prefix("bytes ").and_then(|range| range.split_once('/'));
            let (ends, total) = range.expect("the range is named");
            let (first, last) = ends.split_once('-').expect("it has two ends");
            let [first, last, total] = [first, last, total].map(|number| number.parse::<usize>().expect("a number"));
            assert_eq!((total, &answer.body[..]), (image.len(), &image[first..=last]));
        }
        status => assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE),
    }
    planted_panic(answer.status == StatusCode::PARTIAL_CONTENT, lines);
});

//! Encodings, validators and conditional requests.

use std::collections::HashMap;
use std::io::Read;

use reqwest::Method;

use super::PAGES;
use crate::harness::{Answer, Service, on_one_database};

const ENCODINGS: [&str; 4] = ["br", "gzip", "zstd", "identity"];
const FORMS: [&str; 2] = ["text/html", "text/markdown"];

async fn get(service: &Service, path: &str, headers: &[(&str, &str)]) -> Answer {
    service.send(Method::GET, path, headers, "").await
}

fn decoded(answer: &Answer) -> Vec<u8> {
    let body = answer.body.as_slice();
    let mut plain = Vec::new();
    let read = match answer.header("content-encoding") {
        "br" => brotli::Decompressor::new(body, 4096).read_to_end(&mut plain),
        "gzip" => flate2::read::GzDecoder::new(body).read_to_end(&mut plain),
        "zstd" => zstd::stream::read::Decoder::new(body).and_then(|mut decoder| decoder.read_to_end(&mut plain)),
        "" => return body.to_vec(),
        other => panic!("{other} was not asked for"),
    };
    read.expect("a body that can be decoded");
    plain
}

#[tokio::test]
async fn each_form_in_each_encoding_decodes_to_the_same_and_has_its_own_etag() {
    on_one_database(async |service| {
        let mut etags = HashMap::new();
        for (path, _) in PAGES {
            for form in FORMS {
                let plain = service.get_as(path, form).await;
                assert_eq!(plain.header("content-encoding"), "");
                for encoding in ENCODINGS {
                    let answer = get(service, path, &[("accept", form), ("accept-encoding", encoding)]).await;
                    let used = answer.header("content-encoding");
                    assert_eq!(used, if encoding == "identity" { "" } else { encoding });
                    assert_eq!(decoded(&answer), plain.body, "{path} {form} {encoding}");
                    assert!(used.is_empty() || answer.body.len() < plain.body.len());
                    let etag = answer.header("etag").to_owned();
                    assert!(etag.starts_with('"') && etag.ends_with('"') && etag.len() > 10, "{etag}");
                    let other = etags.insert(etag, (path, form, encoding));
                    assert_eq!(other, None, "the same ETag for {path} {form} {encoding}");
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn the_encoding_is_the_one_the_caller_likes_best() {
    on_one_database(async |service| {
        for (accept, used) in [
            ("gzip, deflate, br, zstd", "br"),
            ("gzip, zstd", "zstd"),
            ("gzip;q=1, br;q=0.5", "gzip"),
            ("br;q=0, gzip", "gzip"),
            ("*", "br"),
            ("*, br;q=0", "zstd"),
            ("deflate", ""),
            ("", ""),
            ("identity, gzip;q=0.5", ""),
            ("identity;q=0, gzip;q=0.5", "gzip"),
            ("GZIP", "gzip"),
            ("*;q=0", ""),
        ] {
            let answer = get(service, "/about", &[("accept-encoding", accept)]).await;
            assert_eq!((answer.status.as_u16(), answer.header("content-encoding")), (200, used), "{accept}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_current_etag_gets_304_without_a_body() {
    on_one_database(async |service| {
        for (path, accept, encoding) in [
            ("/", "text/html", "br"),
            ("/about", "text/markdown", "identity"),
            ("/about.md", "*/*", "gzip"),
            ("/llms.txt", "*/*", "identity"),
            ("/mcp/server-card", "*/*", "zstd"),
        ] {
            let headers = [("accept", accept), ("accept-encoding", encoding)];
            let full = get(service, path, &headers).await;
            let etag = full.header("etag");
            for known in [
                etag.to_owned(),
                format!("W/{etag}"),
                format!("\"other\", {etag}"),
                format!("W/\"x\",W/{etag}"),
                "*".into(),
            ] {
                for method in [Method::GET, Method::HEAD] {
                    let headers = [headers[0], headers[1], ("if-none-match", known.as_str())];
                    let answer = service.send(method, path, &headers, "").await;
                    assert_eq!((answer.status.as_u16(), answer.body.len()), (304, 0), "{path} {known}");
                    for name in ["etag", "vary", "cache-control"] {
                        assert_eq!(answer.header(name), full.header(name), "{name}");
                    }
                }
            }
            for unknown in ["\"other\"", "", etag.trim_matches('"'), "W/*"] {
                let answer = get(service, path, &[headers[0], headers[1], ("if-none-match", unknown)]).await;
                assert_eq!(answer.status, 200, "{path} {unknown}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn after_a_release_no_cache_shows_the_sum_of_the_version_before() {
    on_one_database(async |service| {
        let mut before = Vec::new();
        for path in PAGES.iter().flat_map(|(page, twin)| [page, twin]).chain(&["/llms.txt", "/agents.md"]) {
            let answer = service.get(path).await;
            assert_eq!(answer.header("cache-control"), "no-cache", "{path}");
            before.push((*path, answer.header("etag").to_owned()));
        }
        service.publish("1.4.0");
        let list: serde_json::Value =
            serde_json::from_str(&service.wait_for_text("/releases.json", "1.4.0").await).expect("JSON");
        let sum = list["releases"][0]["sha256"].as_str().expect("a sum");
        let mut with_sum = Vec::new();
        for (path, etag) in before {
            let answer = get(service, path, &[("if-none-match", &etag)]).await;
            if answer.status == 200 && answer.text().contains(sum) {
                with_sum.push(path);
            }
        }
        let pages = ["/", "/index.md", "/releases", "/releases.md", "/llms.txt", "/agents.md"];
        assert_eq!(with_sum, pages);
    })
    .await;
}

#[tokio::test]
async fn the_etag_of_one_form_or_encoding_is_not_taken_for_another() {
    on_one_database(async |service| {
        let html = service.get_as("/about", "text/html").await;
        let compressed = get(service, "/about", &[("accept", "text/html"), ("accept-encoding", "br")]).await;
        for (accept, encoding, known) in [
            ("text/markdown", "identity", html.header("etag")),
            ("text/html", "br", html.header("etag")),
            ("text/html", "identity", compressed.header("etag")),
        ] {
            let headers = [("accept", accept), ("accept-encoding", encoding), ("if-none-match", known)];
            assert_eq!(get(service, "/about", &headers).await.status, 200, "{accept} {encoding}");
        }
    })
    .await;
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    on_one_database(async |service| {
        let files =
            ["/llms.txt", "/robots.txt", "/.well-known/api-catalog", "/.well-known/security.txt", "/nothing-here"];
        for path in PAGES.iter().flat_map(|(page, twin)| [page, twin]).copied().chain(files) {
            for accept in FORMS {
                let headers = [("accept", accept), ("accept-encoding", "gzip")];
                let full = get(service, path, &headers).await;
                let head = service.send(Method::HEAD, path, &headers, "").await;
                assert_eq!((head.status, head.body.len()), (full.status, 0), "{path}");
                assert_eq!(head.header("content-length"), full.body.len().to_string(), "{path}");
                for name in full.headers.keys().filter(|name| *name != "date") {
                    assert_eq!(head.headers.get(name), full.headers.get(name), "{path} {name}");
                }
            }
        }
    })
    .await;
}

//! The five pages, as HTML for people and as Markdown for agents.

mod caching;
mod contents;
mod facts;
mod headers;
mod policies;

use porchlight::config::RawSettings;
use reqwest::Method;

use crate::harness::{Answer, on_one_database, raw};

/// Where a page is, and where its Markdown is.
const PAGES: [(&str, &str); 6] = [
    ("/", "/index.md"),
    ("/about", "/about.md"),
    ("/privacy", "/privacy.md"),
    ("/developers", "/developers.md"),
    ("/contact", "/contact.md"),
    ("/releases", "/releases.md"),
];
const HTML: &str = "text/html; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// A site with a public address.
fn live() -> RawSettings {
    RawSettings { base_url: Some("https://troupe.example".to_owned()), ..RawSettings::default() }
}

#[track_caller]
fn is_page(answer: &Answer, status: u16, content_type: &str) {
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (status, content_type));
    assert_eq!(answer.header("vary"), "Accept, Accept-Encoding");
}

#[tokio::test]
async fn markdown_is_for_clients_that_name_it_and_prefer_it_at_least_as_much_as_html() {
    let claude_code = "text/markdown, text/html, */*";
    let cursor = "text/markdown, text/plain;q=0.9, */*;q=0.8";
    let open_code = "text/markdown;q=1.0, text/x-markdown;q=0.9, text/plain;q=0.8, text/html;q=0.7, */*;q=0.1";
    let open_code_for_html = "text/html;q=1.0, application/xhtml+xml;q=0.9, text/plain;q=0.8, text/markdown;q=0.7";
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
    on_one_database(async |service| {
        for (path, _) in PAGES {
            for (accept, content_type) in [
                (claude_code, MARKDOWN),
                (cursor, MARKDOWN),
                (open_code, MARKDOWN),
                (open_code_for_html, HTML),
                (browser, HTML),
                ("text/markdown", MARKDOWN),
                ("TEXT/Markdown", MARKDOWN),
                ("text/markdown;q=0.5, text/html;q=0.5", MARKDOWN),
                ("text/markdown;q=0.5, text/html;q=0.51", HTML),
                ("text/markdown;q=0.4, text/*;q=0.3", MARKDOWN),
                ("text/markdown;q=0.4, */*;q=0.5", HTML),
                ("text/markdown;q=0", HTML),
                ("text/html;q=0, text/markdown;q=0.1", MARKDOWN),
                ("text/html;q=0, */*", MARKDOWN),
                ("*/*", HTML),
                ("text/*", HTML),
                ("application/json", HTML),
                ("nonsense;;q=, text/markdown", MARKDOWN),
            ] {
                let answer = service.get_as(path, accept).await;
                assert_eq!(answer.header("content-type"), content_type, "{path} for {accept}");
                is_page(&answer, 200, content_type);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn no_preference_gets_html() {
    on_one_database(async |service| {
        let answer = raw(service.address(), "GET /about HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("\r\ncontent-type: text/html; charset=utf-8\r\n"), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn a_page_is_not_acceptable_only_if_both_formats_are_refused() {
    on_one_database(async |service| {
        for accept in ["text/html;q=0, text/markdown;q=0", "*/*;q=0", "text/*;q=0.0, application/json"] {
            let answer = service.get_as("/about", accept).await;
            assert_eq!((answer.status.as_u16(), answer.header("vary")), (406, "Accept"), "{accept}");
            assert!(answer.text().contains("text/markdown"));
        }
    })
    .await;
}

#[tokio::test]
async fn the_markdown_address_of_a_page_ignores_accept() {
    on_one_database(async |service| {
        for (path, twin) in PAGES {
            let negotiated = service.get_as(path, "text/markdown").await;
            for accept in ["text/html", "*/*", "text/markdown;q=0", "image/png"] {
                let answer = service.get_as(twin, accept).await;
                assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, MARKDOWN), "{twin} {accept}");
                assert_eq!(answer.header("vary"), "Accept-Encoding");
                assert_eq!(answer.body, negotiated.body);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn query_strings_change_nothing() {
    on_one_database(async |service| {
        for path in ["/", "/about", "/about.md", "/llms.txt", "/robots.txt"] {
            let plain = service.get(path).await;
            for query in ["?", "?utm_source=x", "?format=md&x=%00", "?a=/../b"] {
                let answer = service.get(&format!("{path}{query}")).await;
                assert_eq!(answer.status, 200, "{path}{query}");
                assert_eq!((&answer.body, answer.header("etag")), (&plain.body, plain.header("etag")));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn pages_and_files_are_for_reading_only() {
    on_one_database(async |service| {
        for path in ["/", "/about", "/about.md", "/llms.txt", "/openapi.json"] {
            for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS, Method::TRACE] {
                let answer = service.send(method.clone(), path, &[], "").await;
                assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, "GET, HEAD"), "{method} {path}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn an_unknown_path_is_a_404_with_ways_on_whatever_is_asked_for() {
    on_one_database(async |service| {
        for (accept, content_type) in [
            ("text/html", HTML),
            ("*/*", HTML),
            ("text/markdown, */*", MARKDOWN),
            ("text/html;q=0, text/markdown;q=0", HTML),
        ] {
            for method in [Method::GET, Method::POST, Method::DELETE] {
                let headers = [("accept", accept), ("if-none-match", "*")];
                let answer = service.send(method, "/nothing-here", &headers, "").await;
                is_page(&answer, 404, content_type);
                assert_eq!(answer.header("etag"), "");
                let text = answer.text();
                for way_on in ["/llms.txt", "/developers", "/#download"] {
                    assert!(text.contains(way_on), "{way_on}");
                }
                assert_eq!(text.contains(r#"<meta name="robots" content="noindex">"#), content_type == HTML);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn paths_are_matched_as_they_were_sent() {
    on_one_database(async |service| {
        for path in [
            "/about/",
            "//about",
            "/%61bout",
            "/about%2F",
            "/about%00",
            "/About",
            "/about;x=1",
            "/./about",
            "/x/../about",
            "/index.md/",
            "/index.html",
            "/%2e%2e/etc/passwd",
            "/assets/",
            "/llms.txt/",
            "/.well-known",
            "/mcp/",
        ] {
            // HTTP clients normalise paths before they send them.
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            let answer = raw(service.address(), request).await;
            assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{path}: {answer}");
        }
    })
    .await;
}

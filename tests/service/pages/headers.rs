//! Headers of pages and of everything else.

use porchlight::config::RawSettings;
use reqwest::Method;
use serde_json::json;

use super::{PAGES, live};
use crate::harness::{Answer, Service, on_one_database, on_one_database_with};

/// One response of each kind.
async fn answers(service: &Service) -> Vec<(u16, Answer)> {
    let etag = service.get("/about").await.header("etag").to_owned();
    let bad_email = json!({ "email": "nobody" });
    vec![
        (200, service.get("/").await),
        (200, service.get("/about.md").await),
        (200, service.get("/openapi.json").await),
        (200, service.get("/.well-known/security.txt").await),
        (200, service.post("/mcp", &json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await),
        (200, service.post("/api/waitlist", &json!({ "email": "ada@example.com" })).await),
        (202, service.post("/mcp", &json!({ "jsonrpc": "2.0", "method": "ping" })).await),
        (304, service.send(Method::GET, "/about", &[("if-none-match", &etag)], "").await),
        (400, service.post("/api/download", &bad_email).await),
        (400, service.post_text("/mcp", "").await),
        (400, service.send(Method::GET, "/", &[("host", "a"), ("host", "b")], "").await),
        (403, service.send(Method::POST, "/mcp", &[("origin", "null")], "").await),
        (404, service.get("/nothing-here").await),
        (404, service.get("/api/nothing-here").await),
        (405, service.send(Method::POST, "/about", &[], "").await),
        (405, service.get("/api/download").await),
        (405, service.get("/mcp").await),
        (406, service.get_as("/", "*/*;q=0").await),
    ]
}

#[track_caller]
fn is_guarded(answer: &Answer, https: bool) {
    let policy = answer.header("content-security-policy");
    let open: Vec<_> = policy.split("; ").collect();
    for directive in ["default-src 'none'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"] {
        assert!(open.contains(&directive), "{directive}: {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "strict-origin-when-cross-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    assert!(answer.header("permissions-policy").contains("camera=()"));
    assert_eq!(answer.header("set-cookie"), "");
    let strict = answer.header("strict-transport-security");
    assert_eq!(strict, if https { "max-age=63072000" } else { "" });
}

#[tokio::test]
async fn every_kind_of_answer_is_guarded() {
    on_one_database(async |service| {
        for (status, answer) in answers(service).await {
            assert_eq!(answer.status, status, "{}", answer.text());
            is_guarded(&answer, false);
        }
    })
    .await;
}

#[tokio::test]
async fn browsers_are_held_to_https_only_where_the_site_is_reached_through_it() {
    on_one_database_with(live(), async |service| {
        for (status, answer) in answers(service).await {
            assert_eq!(answer.status, status);
            is_guarded(&answer, true);
        }
        let nothing_to_hand_out = service.post("/api/download", &json!({ "email": "ada@example.com" })).await;
        nothing_to_hand_out.expect_problem(503, "unavailable");
        is_guarded(&nothing_to_hand_out, true);
    })
    .await;
    let subdomains = RawSettings { hsts_subdomains: Some("yes".to_owned()), ..live() };
    on_one_database_with(subdomains, async |service| {
        let strict = service.get("/").await.header("strict-transport-security").to_owned();
        assert_eq!(strict, "max-age=63072000; includeSubDomains");
    })
    .await;
    let plain = RawSettings { base_url: Some("http://troupe.example".to_owned()), ..RawSettings::default() };
    on_one_database_with(plain, async |service| is_guarded(&service.get("/").await, false)).await;
}

/// Target, relation and type of each link in a Link header.
fn links(header: &str) -> Vec<(String, String, String)> {
    header
        .split(", ")
        .map(|link| {
            let mut parts = link.split("; ");
            let target = parts.next().expect("a target").trim_matches(['<', '>']).to_owned();
            let mut named = |name: &str| {
                let part = parts.next().unwrap_or_default();
                part.strip_prefix(name).unwrap_or_else(|| panic!("{name} in {link}")).trim_matches('"').to_owned()
            };
            (target, named("rel="), named("type="))
        })
        .collect()
}

#[tokio::test]
async fn the_home_page_links_to_what_agents_look_for() {
    on_one_database(async |service| {
        let header = service.get("/").await.header("link").to_owned();
        let relations: Vec<_> = links(&header).into_iter().map(|(target, relation, _)| (relation, target)).collect();
        let expected = [
            ("api-catalog", "/.well-known/api-catalog"),
            ("service-desc", "/openapi.json"),
            ("service-doc", "/developers"),
            ("describedby", "/llms.txt"),
            ("alternate", "/index.md"),
        ];
        assert_eq!(relations, expected.map(|(relation, target)| (relation.to_owned(), target.to_owned())));
    })
    .await;
}

#[tokio::test]
async fn a_linked_type_is_the_type_that_is_served() {
    on_one_database(async |service| {
        for (path, twin) in PAGES {
            let header = service.get(path).await.header("link").to_owned();
            let links = links(&header);
            assert!(links.contains(&(twin.to_owned(), "alternate".to_owned(), "text/markdown".to_owned())), "{path}");
            for (target, _, media_type) in links {
                let answer = service.get(&target).await;
                assert_eq!((answer.status.as_u16(), answer.media_type()), (200, media_type.as_str()), "{target}");
            }
        }
    })
    .await;
}

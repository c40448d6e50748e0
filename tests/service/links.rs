//! Every link works, every asset matches its hash, every example works as pasted.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use porchlight::domain::sha256::Sha256;
use serde_json::{Value, json};

use crate::harness::markup::{addresses, attributes, code_blocks};
use crate::harness::{Answer, Program, Service, on_each_database, on_one_database};

const PAGES: [&str; 7] = ["/", "/about", "/privacy", "/developers", "/contact", "/releases", "/nothing-here"];
/// Paths that accept only POST.
const ENDPOINTS: [&str; 4] = ["/api/download", "/api/waitlist", "/api/contact", "/mcp"];

/// The links of a response: in its Link header, in HTML elements, in plain text.
fn links(answer: &Answer, base_url: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(&answer.body);
    let mut links: Vec<_> = answer
        .header("link")
        .split('<')
        .skip(1)
        .map(|link| link.split('>').next().unwrap_or_default().to_owned())
        .collect();
    if answer.media_type() == "text/html" {
        for (element, attribute) in
            [("a", "href"), ("link", "href"), ("script", "src"), ("img", "src"), ("form", "action")]
        {
            links.extend(attributes(&text, element, attribute));
        }
    } else {
        links.extend(addresses(&text).into_iter().filter(|address| address.starts_with(base_url)));
    }
    links
}

/// Follows every link from `start`; returns the paths that were found.
pub async fn crawl(service: &Service, start: &str, answer: &Answer) -> BTreeSet<String> {
    let from = |path: &str, answer: &Answer| {
        links(answer, service.base_url()).into_iter().map(|link| (path.to_owned(), link)).collect::<Vec<_>>()
    };
    let mut waiting = from(start, answer);
    let mut anchors = BTreeMap::from([(start.to_owned(), attributes(&answer.text(), "*", "id"))]);
    while let Some((page, link)) = waiting.pop() {
        let relative = link.strip_prefix(service.base_url()).unwrap_or(&link);
        let (path, anchor) = relative.split_once('#').unwrap_or((relative, ""));
        let path = match path {
            "" if relative == link => page.clone(),
            "" => "/".to_owned(),
            path => path.to_owned(),
        };
        assert!(path.starts_with('/'), "{page} links to {link}, which is elsewhere");
        if !anchors.contains_key(&path) {
            let answer = service.get(&path).await;
            if [302, 303].contains(&answer.status.as_u16()) {
                waiting.push((page.clone(), answer.header("location").to_owned()));
                continue;
            }
            if ENDPOINTS.contains(&path.as_str()) {
                assert_eq!(answer.status, 405, "{page} links to {link}");
            } else {
                assert_eq!(answer.status, 200, "{page} links to {link}");
                waiting.extend(from(&path, &answer));
            }
            anchors.insert(path.clone(), attributes(&String::from_utf8_lossy(&answer.body), "*", "id"));
        }
        assert!(
            anchor.is_empty() || anchors[&path].iter().any(|id| id == anchor),
            "{page} links to {link}, and there is no such anchor"
        );
    }
    anchors.into_keys().collect()
}

#[tokio::test]
async fn from_any_page_in_either_form_every_link_and_anchor_leads_somewhere() {
    on_one_database(async |service| {
        for (start, accept) in [
            ("/", "text/html"),
            ("/privacy.md", "text/markdown"),
            ("/nothing", "text/html"),
            ("/nothing", "text/markdown"),
        ] {
            let found = crawl(service, start, &service.get_as(start, accept).await).await;
            for path in [
                "/",
                "/index.md",
                "/about",
                "/about.md",
                "/privacy",
                "/privacy.md",
                "/developers",
                "/developers.md",
                "/contact",
                "/contact.md",
                "/llms.txt",
                "/agents.md",
                "/sitemap.xml",
                "/robots.txt",
                "/openapi.json",
                "/mcp",
                "/api/download",
                "/.well-known/api-catalog",
                "/.well-known/mcp/server-card.json",
                "/.well-known/security.txt",
                "/.well-known/agent-skills/index.json",
                "/.well-known/agent-skills/troupe-site/SKILL.md",
                "/.well-known/ai-catalog.json",
            ] {
                assert!(found.contains(path), "{path} cannot be found from {start} as {accept}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn every_problem_type_leads_to_its_section() {
    on_one_database(async |service| {
        let ids = attributes(&service.get("/developers").await.text(), "*", "id");
        let document = service.get("/openapi.json").await.json();
        let codes = document.pointer("/components/schemas/ErrorCode/enum").expect("the codes").clone();
        for code in codes.as_array().expect("a list") {
            let anchor = format!("errors-{}", code.as_str().expect("a code").replace('_', "-"));
            assert!(ids.contains(&anchor), "{anchor}");
        }
        for problem in [
            service.get("/api/nothing-here").await.expect_problem(404, "not_found"),
            service.post("/api/contact", &json!({ "email": "a@b.example" })).await.expect_problem(400, "empty_message"),
        ] {
            for member in ["type", "documentation_url"] {
                let (page, anchor) = problem[member].as_str().and_then(|link| link.split_once('#')).expect("an anchor");
                assert_eq!(page, format!("{}/developers", service.base_url()));
                assert!(ids.iter().any(|id| id == anchor), "{anchor}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn no_id_is_there_twice_on_a_page() {
    on_one_database(async |service| {
        for path in PAGES {
            let ids = attributes(&service.get(path).await.text(), "*", "id");
            let unique: BTreeSet<_> = ids.iter().collect();
            assert!(ids.len() > 2);
            assert_eq!(unique.len(), ids.len(), "{path}: {ids:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn assets_are_kept_for_good_and_are_what_the_pages_say() {
    on_one_database(async |service| {
        for path in PAGES {
            let html = service.get(path).await.text();
            let style = r#"link rel="stylesheet""#;
            let integrity = attributes(&html, style, "integrity");
            let styles = attributes(&html, style, "href");
            assert_eq!((styles.len(), integrity.len()), (1, 1), "{path}");
            let icons = attributes(&html, r#"link rel="icon""#, "href");
            for asset in styles.iter().chain(&icons) {
                let answer = service.get(asset).await;
                assert_eq!(answer.status, 200, "{asset}");
                assert_eq!(answer.header("cache-control"), "public, max-age=31536000, immutable");
                let digest = Sha256::of(&answer.body);
                assert!(asset.contains(&digest.short(12)), "the name of {asset} changes with its content");
                let shown_by = if styles.contains(asset) { "same-origin" } else { "cross-origin" };
                assert_eq!(answer.header("cross-origin-resource-policy"), shown_by, "{asset}");
                if styles.contains(asset) {
                    assert_eq!(integrity, [format!("sha256-{}", digest.base64())]);
                    assert_eq!(answer.media_type(), "text/css");
                }
            }
        }
    })
    .await;
}

/// Runs a block in a shell and returns the body that it prints.
async fn paste(block: String) -> String {
    let shown = block.clone();
    let run = move || Program::run_to_end(Command::new("sh").args(["-c", &block]).env("no_proxy", "*"));
    let output = tokio::task::spawn_blocking(run).await.expect("an end");
    assert!(output.status.success(), "{shown}: {}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).expect("text");
    printed.rsplit("\r\n\r\n").next().expect("a body").to_owned()
}

#[tokio::test]
async fn every_example_works_as_pasted() {
    on_each_database(async |service| {
        let mut calls = BTreeSet::new();
        for page in ["/developers.md", "/index.md", "/contact.md", "/agents.md"] {
            for block in code_blocks(&service.get(page).await.text(), "sh") {
                if block.starts_with("claude ") || block.contains(".dmg") {
                    continue;
                }
                assert!(block.starts_with("curl ") && block.contains(service.base_url()), "{block}");
                let answer = paste(block.clone()).await;
                if block.contains("text/markdown") {
                    assert_eq!(answer, service.get("/about.md").await.text());
                    continue;
                }
                let answer: Value = answer.parse().unwrap_or_else(|error| panic!("{block}{error}: {answer}"));
                if block.contains("nobody") {
                    assert_eq!((&answer["status"], &answer["code"]), (&json!(400), &json!("invalid_email")));
                } else {
                    assert!(answer["ok"] == true || answer["result"].is_object(), "{block}{answer}");
                }
                calls.extend(ENDPOINTS.iter().copied().filter(|path| block.contains(path)));
            }
        }
        assert_eq!(calls.len(), ENDPOINTS.len(), "every endpoint has an example: {calls:?}");
        assert_eq!(service.database.texts("SELECT email FROM people").await, ["you@example.com"]);
    })
    .await;
}

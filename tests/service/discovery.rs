//! What agents, crawlers and scanners look for, each in its exact shape.

mod machines;

use std::time::Duration;

use porchlight::clock::Clock;
use porchlight::config::RawSettings;
use porchlight::domain::sha256::Sha256;
use serde_json::{Value, json};

use crate::harness::{Service, on_one_database, on_one_database_with};

const BASE: &str = "https://troupe.example";
const PAGES: [&str; 6] = ["/", "/about", "/privacy", "/developers", "/contact", "/releases"];

fn live() -> RawSettings {
    RawSettings { base_url: Some(BASE.to_owned()), ..RawSettings::default() }
}

async fn text(service: &Service, path: &str) -> String {
    let answer = service.get(path).await;
    assert_eq!(answer.status, 200, "{path}");
    answer.text()
}

#[tokio::test]
async fn every_resource_has_its_media_type_and_says_how_long_it_may_be_kept() {
    on_one_database(async |service| {
        for (path, content_type, caching) in [
            ("/llms.txt", "text/plain; charset=utf-8", "no-cache"),
            ("/agents.md", "text/markdown; charset=utf-8", "no-cache"),
            ("/sitemap.xml", "application/xml", "no-cache"),
            ("/robots.txt", "text/plain; charset=utf-8", "no-cache"),
            ("/openapi.json", "application/json", "no-cache"),
            (
                "/.well-known/api-catalog",
                "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"",
                "no-cache",
            ),
            ("/.well-known/mcp/server-card.json", "application/json", "public, max-age=3600"),
            ("/mcp/server-card", "application/mcp-server-card+json", "public, max-age=3600"),
            ("/.well-known/security.txt", "text/plain; charset=utf-8", "no-cache"),
            ("/.well-known/agent-skills/index.json", "application/json", "no-cache"),
            ("/.well-known/agent-skills/troupe-site/SKILL.md", "text/markdown; charset=utf-8", "no-cache"),
            ("/.well-known/ai-catalog.json", "application/ai-catalog+json", "no-cache"),
            ("/.well-known/ard.json", "application/ai-catalog+json", "no-cache"),
        ] {
            let answer = service.get_as(path, "text/html").await;
            assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, content_type), "{path}");
            assert_eq!(answer.header("cache-control"), caching, "{path}");
            assert!(!answer.body.is_empty());
        }
    })
    .await;
}

#[tokio::test]
async fn addresses_of_sign_in_are_plain_404s() {
    on_one_database(async |service| {
        for path in [
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/oauth-authorization-server",
            "/.well-known/oauth-authorization-server/mcp",
            "/.well-known/openid-configuration",
            "/.well-known/openid-configuration/mcp",
            "/mcp/.well-known/openid-configuration",
            "/register",
            "/authorize",
        ] {
            let answer = service.get_as(path, "application/json").await;
            assert_eq!((answer.status.as_u16(), answer.header("www-authenticate")), (404, ""), "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn llms_txt_has_a_title_a_summary_and_lists_of_markdown_that_exists() {
    on_one_database_with(live(), async |service| {
        let llms = text(service, "/llms.txt").await;
        let blocks: Vec<_> = llms.split("\n\n").collect();
        assert_eq!(blocks[0], "# Troupe");
        assert!(blocks[1].starts_with("> ") && !blocks[1].contains('\n'), "{}", blocks[1]);
        assert!(!blocks[2].starts_with(['#', '-', '>']), "a paragraph on when to use what");
        assert!(llms.contains("Deprecated: prefer the download"), "which of the two to prefer");
        assert_eq!(llms.lines().filter(|line| line.starts_with("# ")).count(), 1);
        assert!(llms.lines().filter(|line| line.starts_with("## ")).count() >= 2);

        let (_, sections) = llms.split_once("\n## ").expect("sections");
        let mut listed = Vec::new();
        for line in sections.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with("## ")) {
            let item = line.strip_prefix("- [").unwrap_or_else(|| panic!("not a link: {line}"));
            let (name, rest) = item.split_once("](").expect("a link");
            let (address, note) = rest.split_once("): ").expect("a note");
            assert!(!name.is_empty() && !note.is_empty(), "{line}");
            let path = address.strip_prefix(BASE).unwrap_or_else(|| panic!("{address} is elsewhere"));
            assert_eq!(service.get(path).await.media_type(), "text/markdown", "{path}");
            listed.push(path.to_owned());
        }
        listed.sort();
        let all =
            ["/about.md", "/agents.md", "/contact.md", "/developers.md", "/index.md", "/privacy.md", "/releases.md"];
        assert_eq!(listed, all);
    })
    .await;
}

/// What the two briefings must say, each in words of its own.
#[tokio::test]
async fn the_briefings_are_short_and_answer_the_usual_wishes() {
    on_one_database_with(live(), async |service| {
        let llms = text(service, "/llms.txt").await;
        assert!(llms.len() < 4_500, "a model reads all of it: {} bytes", llms.len());
        let agents = text(service, "/agents.md").await;
        for (path, briefing) in [("/llms.txt", &llms), ("/agents.md", &agents)] {
            for fact in [
                "macOS 14 or later, Apple silicon and Intel",
                "free",
                "do not build a competing product",
                "may not be signed with Apple",
                "Open Anyway",
                "No cookies",
                "erasure",
                "/api/download",
                "updates",
                "/releases.atom",
                "/api/contact",
                "a copy, a correction",
                "confidential way",
                "/api/waitlist",
                "waiting list",
                "to pass on",
                "shasum -a 256",
                "/releases.json",
                "about_service",
                "read_page",
                "get_download",
                "join_waitlist",
                "`initialize` is not needed",
                "Never respell or guess an address",
                "unasked",
                "ASCII",
            ] {
                assert!(briefing.contains(fact), "{path} says nothing of {fact:?}");
            }
        }
    })
    .await;
}

/// A name of a program is not an IP address, and must not read like one.
#[tokio::test]
async fn source_is_described_as_the_name_of_a_program_everywhere() {
    on_one_database_with(live(), async |service| {
        let tools = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        let mut texts = vec![("/mcp", service.post("/mcp", &tools).await.text())];
        for path in
            ["/llms.txt", "/agents.md", "/openapi.json", "/index.md", "/privacy.md", "/developers.md", "/developers"]
        {
            texts.push((path, text(service, path).await));
        }
        for (path, text) in texts {
            let text = text.to_lowercase();
            for phrase in ["where the request", "request came from", "request comes from"] {
                assert!(!text.contains(phrase), "{path} has {phrase:?}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn robots_txt_is_one_group_for_all_with_a_content_signal_and_the_sitemap() {
    for (ai_train, signal) in [(None, "no"), (Some("no"), "no"), (Some("yes"), "yes")] {
        let written = RawSettings { ai_train: ai_train.map(str::to_owned), ..live() };
        on_one_database_with(written, async |service| {
            let robots = text(service, "/robots.txt").await;
            let (group, rest) = robots.split_once("\n\n").expect("one group");
            assert_eq!(rest, format!("Sitemap: {BASE}/sitemap.xml\n"));
            let agents: Vec<_> = group.lines().map_while(|line| line.strip_prefix("User-agent: ")).collect();
            assert_eq!(agents[0], "*");
            for crawler in [
                "GPTBot",
                "OAI-SearchBot",
                "ChatGPT-User",
                "ClaudeBot",
                "Claude-User",
                "Claude-SearchBot",
                "Google-Extended",
                "Applebot-Extended",
                "PerplexityBot",
                "CCBot",
            ] {
                assert!(agents.contains(&crawler), "{crawler}");
            }
            assert_eq!(
                group.lines().skip(agents.len()).collect::<Vec<_>>(),
                [&format!("Content-Signal: search=yes, ai-input=yes, ai-train={signal}"), "Allow: /"]
            );
        })
        .await;
    }
}

#[tokio::test]
async fn the_sitemap_has_the_canonical_pages_with_the_day_of_their_content() {
    on_one_database_with(live(), async |service| {
        let mut urls = String::new();
        for page in PAGES {
            let markdown = service.get_as(page, "text/markdown").await.text();
            let updated = markdown.lines().find_map(|line| line.strip_prefix("last_updated: ")).expect("a date");
            urls = format!("{urls}  <url><loc>{BASE}{page}</loc><lastmod>{updated}</lastmod></url>\n");
        }
        let expected = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{urls}</urlset>\n"
        );
        assert_eq!(text(service, "/sitemap.xml").await, expected);
    })
    .await;
}

#[tokio::test]
async fn security_txt_expires_on_a_day_and_leads_to_the_contact_page() {
    const PATH: &str = "/.well-known/security.txt";
    on_one_database_with(live(), async |service| {
        let day = expiry(&text(service, PATH).await);
        service.clock.advance(Duration::from_hours(24));
        let file = text(service, PATH).await;
        assert_eq!(expiry(&file), day, "a promise of the day of the commit, not of every day anew");
        let fields: Vec<_> = file.lines().map(|line| line.split_once(": ").expect("a field")).collect();
        let values =
            |name: &str| fields.iter().filter(|(field, _)| *field == name).map(|(_, value)| *value).collect::<Vec<_>>();
        assert_eq!(values("Contact"), [format!("{BASE}/contact#security")]);
        assert_eq!(values("Policy"), [format!("{BASE}/contact#security-policy")]);
        assert_eq!(values("Canonical"), [format!("{BASE}{PATH}")]);
        assert_eq!(values("Preferred-Languages"), ["en"]);
        let days = (day.as_second() - Clock::System.now().unix_seconds()) / 86_400;
        assert!((1..365).contains(&days), "{days} days ahead of now, if the commit is not older than a year");
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let facts = format!("security_txt_expires = \"2027-03-01\"\n{}", include_str!("../../content/site.toml"));
    std::fs::write(folder.path().join("site.toml"), facts).unwrap();
    let settings = RawSettings { site_dir: Some(folder.path().display().to_string()), ..live() };
    on_one_database_with(settings, async |service| {
        assert_eq!(expiry(&text(service, PATH).await).to_string(), "2027-03-01T00:00:00Z");
    })
    .await;
}

/// When `security.txt` expires: the start of a day.
#[track_caller]
fn expiry(file: &str) -> jiff::Timestamp {
    let mut expires = file.lines().filter_map(|line| line.strip_prefix("Expires: "));
    let (Some(expires), None) = (expires.next(), expires.next()) else { panic!("one Expires: {file}") };
    assert!(expires.ends_with("T00:00:00Z"), "{expires}");
    expires.parse().expect("a moment")
}

#[tokio::test]
async fn the_skill_is_indexed_with_the_digest_of_what_is_served() {
    on_one_database_with(live(), async |service| {
        let index: Value = text(service, "/.well-known/agent-skills/index.json").await.parse().expect("JSON");
        let skill = &index["skills"][0];
        let path = skill["url"].as_str().and_then(|url| url.strip_prefix(BASE)).expect("our own skill");
        let served = service.get(path).await;
        let text = served.text();
        let front_matter = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_else(|| panic!("no {name}")).to_owned()
        };
        let (name, description) = (front_matter("name"), front_matter("description"));
        assert!(text.starts_with("---\n"));
        assert!(name.len() <= 64 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{name}");
        assert!((1..=1024).contains(&description.chars().count()));
        assert_eq!(
            index,
            json!({
                "$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json",
                "skills": [{
                    "name": name,
                    "type": "skill-md",
                    "description": description,
                    "url": format!("{BASE}/.well-known/agent-skills/{name}/SKILL.md"),
                    "digest": format!("sha256:{}", Sha256::of(&served.body).hex()),
                }],
            })
        );
    })
    .await;
}

#[tokio::test]
async fn the_ai_catalog_names_the_mcp_server_at_both_its_addresses() {
    on_one_database_with(live(), async |service| {
        let catalog = service.get("/.well-known/ai-catalog.json").await;
        assert_eq!(catalog.body, service.get("/.well-known/ard.json").await.body);
        let catalog = catalog.json();
        let queries = catalog["entries"][0]["representativeQueries"].clone();
        assert!((2..=5).contains(&queries.as_array().expect("queries").len()));
        assert_eq!(
            catalog,
            json!({
                "specVersion": "1.0",
                "host": { "displayName": "Troupe", "identifier": "troupe.example" },
                "entries": [{
                    "identifier": "urn:air:troupe.example:mcp:troupe",
                    "displayName": "Troupe",
                    "type": "application/mcp-server-card+json",
                    "url": format!("{BASE}/mcp/server-card"),
                    "representativeQueries": queries,
                }],
            })
        );
        assert_eq!(service.get("/mcp/server-card").await.header("content-type"), "application/mcp-server-card+json");
    })
    .await;
}

//! Who reads: pages, Markdown, briefings and tools are counted by day and reader, and nothing else is kept.

use std::time::Duration;

use porchlight::config::RawSettings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Database, Program, Service, each_database};
use crate::ops::{ask, watched};

const SAFARI: &str = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) \
                      Version/26.0 Safari/605.1.15";
const CLAUDE_BOT: &str =
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)";

async fn read(service: &Service, path: &str, headers: &[(&str, &str)]) -> u16 {
    service.send(Method::GET, path, headers, "").await.status.as_u16()
}

/// Reads as four readers do, and does what is no read.
async fn read_everything(service: &Service) {
    let person = [("user-agent", SAFARI)];
    let crawler = [("user-agent", CLAUDE_BOT)];
    let etag = service.get("/about").await.header("etag").to_owned();
    assert_eq!(read(service, "/", &person).await, 200);
    assert_eq!(read(service, "/about", &[("user-agent", SAFARI), ("if-none-match", &etag)]).await, 304);
    assert_eq!(read(service, "/about", &crawler).await, 200);
    assert_eq!(read(service, "/about", &[("user-agent", CLAUDE_BOT), ("accept", "text/markdown")]).await, 200);
    for path in ["/index.md", "/llms.txt", "/agents.md", "/openapi.json"] {
        assert_eq!(read(service, path, &crawler).await, 200);
    }
    // A browser does not ask for Markdown.
    assert_eq!(read(service, "/", &[("user-agent", SAFARI), ("accept", "text/markdown")]).await, 200);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "about_service" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "clientInfo": { "name": "claude-ai" } } });
    for body in [&call, &hello] {
        service.send(Method::POST, "/mcp", &[("user-agent", "claude-code/2.1")], body.to_string()).await;
    }

    let home = service.get("/").await.text();
    let style = home.split("href=\"").find_map(|rest| rest.split('"').next().filter(|path| path.contains("/style.")));
    for path in [style.expect("a style sheet"), "/nothing", "/releases.atom", "/releases/latest/Troupe.dmg"] {
        read(service, path, &crawler).await;
    }
    service.send(Method::HEAD, "/about", &crawler, "").await;
    service.send(Method::POST, "/about", &crawler, "").await;
    assert_eq!(
        read(service, "/about", &[("user-agent", CLAUDE_BOT), ("accept", "text/html;q=0, text/markdown;q=0")]).await,
        406
    );
}

fn stats(database: &Database, service: &Service) -> Value {
    let mut command = service.command(&["stats", "--json", "--since", "2026-11-14", "--database-url", database.url()]);
    let output = Program::run_to_end(&mut command);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn reader(name: &str, kind: &str, counts: [u64; 4]) -> Value {
    let [pages, markdown, briefings, tools] = counts;
    json!({ "reader": name, "kind": kind, "pages": pages, "markdown": markdown, "briefings": briefings, "tools": tools })
}

#[tokio::test]
async fn reads_are_counted_by_day_and_reader_and_shown_in_stats_and_on_the_dashboard() {
    for database in each_database().await {
        let service = Service::start(RawSettings::default(), database.clone()).await;
        read_everything(&service).await;
        service.clock.advance(Duration::from_hours(24));
        read(&service, "/", &[("user-agent", "GPTBot/1.3")]).await;
        // The counts are in the database after a stop.
        service.stop().await;

        let service = Service::start(watched(), database.clone()).await;
        service.clock.advance(Duration::from_hours(24));
        let json = stats(&database, &service);
        let first = json!([
            reader("ClaudeBot", "crawler", [1, 2, 3, 0]),
            reader("Claude Code", "agent", [0, 0, 0, 1]),
            reader("people", "person", [2, 0, 0, 0]),
            // The harness itself, which reads `/about` and `/`, and the browser that asked for Markdown.
            reader("other programs", "program", [2, 1, 0, 0]),
        ]);
        let second = json!([reader("GPTBot", "crawler", [1, 0, 0, 0])]);
        assert_eq!(json["periods"][1]["readers"], first, "{:#}", json["periods"]);
        assert_eq!(json["periods"][2]["readers"], second);
        assert_eq!(json["readers"].as_array().map(Vec::len), Some(5));
        assert_eq!(json["readers"][4], first[3]);

        let (_, _, page) = ask(&service, "/", &[]).await;
        for row in ["ClaudeBot", "Claude Code", "GPTBot"] {
            assert!(page.contains(&format!("<bdi>{row}</bdi>")), "{page}");
        }
        assert!(page.contains("13 reads since"), "{page}");

        let mut command = service.command(&["stats", "--since", "2026-11-15", "--database-url", database.url()]);
        let table = String::from_utf8(Program::run_to_end(&mut command).stdout).expect("UTF-8");
        assert!(table.lines().any(|line| line.split_whitespace().eq(["ClaudeBot", "1", "2", "3", "0"])), "{table}");
        assert!(
            table.lines().any(|line| line.split_whitespace().eq(["2026-11-15", "2", "1", "6", "3", "0"])),
            "{table}"
        );
        service.stop().await;
    }
}

#[tokio::test]
async fn nothing_of_a_reader_is_stored_but_its_count() {
    for database in each_database().await {
        let service = Service::start(RawSettings::default(), database.clone()).await;
        read(
            &service,
            "/about?from=secret-query",
            &[("user-agent", "secret-agent/1"), ("referer", "http://secret.example/")],
        )
        .await;
        service.stop().await;
        let rows = database.texts("SELECT reader || ' ' || pages FROM reads").await;
        assert_eq!(rows, ["other programs 1"]);
    }
}

/// Google-Extended and Applebot-Extended are names for robots.txt alone.
#[test]
fn every_crawler_of_the_default_site_that_has_a_user_agent_is_known_by_name() {
    let facts: toml::Table = include_str!("../../content/site.toml").parse().expect("TOML");
    for crawler in facts["crawlers"].as_array().expect("a list").iter().filter_map(toml::Value::as_str) {
        let reader = porchlight::domain::statistics::Reader::of_user_agent(Some(&format!("{crawler}/1.0")), false);
        assert_eq!(reader.name() == crawler, !crawler.ends_with("-Extended"), "{crawler}");
    }
}

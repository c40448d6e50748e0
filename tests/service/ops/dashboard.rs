//! The dashboard: one page about the launch, on screen and for screen readers.

use std::time::Duration;

use porchlight::config::RawSettings;
use serde_json::json;

use super::{ask, watched};
use crate::harness::{Database, Program, Service, markup, on_each_database_with, on_one_database_with};
use crate::releases::live;

/// The day of every test, as stored in `counts`.
const TODAY: i64 = 20_772;

/// A day of a launch: three downloads, one of them by a known person, an opt-in, and a message.
async fn launch(service: &Service) {
    for (email, updates, source) in [("ada", true, "<b>hn</b>"), ("bob", false, "<b>hn</b>"), ("ada", false, "")] {
        let order = json!({ "email": format!("{email}@example.com"), "updates": updates, "source": source });
        service.post("/api/download", &order).await.expect_ok();
    }
    service.post("/api/contact", &json!({ "email": "cyd@example.com", "message": "A secret" })).await.expect_ok();
}

async fn page(service: &Service) -> String {
    let (status, _, page) = ask(service, "/", &[]).await;
    assert_eq!(status, 200, "{page}");
    page
}

/// The name and the numbers of each row of the table beneath a heading.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, section) = page.split_once(&format!("id=\"{heading}\"")).expect("a heading");
    let section = section.split("</section>").next().expect("its end");
    let row = |row: &String| [markup::texts(row, "bdi"), markup::texts(row, "td")].concat();
    markup::texts(section, "tr").iter().skip(1).map(row).collect()
}

#[tokio::test]
async fn the_dashboard_shows_the_launch_and_no_personal_data() {
    on_each_database_with(watched(), async |service| {
        let empty = page(service).await;
        assert!(empty.contains("0 downloads and 0 joins since 9 Nov."), "{empty}");
        launch(service).await;
        let (status, headers, page) = ask(service, "/", &[]).await;
        assert_eq!((status, headers["content-type"].as_bytes()), (200, b"text/html; charset=utf-8".as_slice()));
        assert!(page.contains("3 downloads and 2 new people since 9 Nov. The most were 3 (15 Nov, so far)."), "{page}");
        assert!(page.contains("33 % of downloads since 9 Nov came with a new opt-in to the monthly email."), "{page}");
        assert!(page.contains("15 Nov, so far: 3 downloads, 2 new people"), "the tooltip");
        assert!(page.contains("14 Nov: 0 downloads"), "{page}");
        assert!(page.contains("<dt>Waiting messages</dt><dd>1, the oldest for less than a minute</dd>"), "{page}");
        assert!(page.contains("&lt;b&gt;hn") && !page.contains("<b>"), "a source is a stranger's text");
        assert!(!page.contains("example.com") && !page.contains("secret"), "{page}");
        for (by, begins) in [("week", "since week of 28 Sep"), ("month", "since May 2026")] {
            let (status, _, page) = ask(service, &format!("/?by={by}"), &[]).await;
            assert!(status == 200 && page.contains(begins), "{page}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_empty_database_of_a_public_site_is_an_alert_until_the_first_record() {
    on_each_database_with(RawSettings { ops_listen: watched().ops_listen, ..live() }, async |service| {
        let database = ["--database-url", service.database.url(), "--base-url", service.base_url()];
        let check = || Program::run(service.command(&[&["check"], &database[..]].concat())).1;
        for text in [page(service).await, check()] {
            assert!(text.contains("The database is empty. If this site had visitors before"), "{text}");
        }
        service.get("/").await;
        service.post("/api/contact", &json!({ "email": "ada@example.com", "message": "Hello" })).await.expect_ok();
        for text in [page(service).await, check()] {
            assert!(!text.contains("The database is empty"), "{text}");
        }
    })
    .await;
}

#[tokio::test]
async fn it_needs_no_script_and_each_chart_is_also_text_and_a_table() {
    on_each_database_with(watched(), async |service| {
        launch(service).await;
        let check = "INSERT INTO counts (day, kind, via, name, times) VALUES (20772, 'update', '', '1.4.0', 2), \
             (20772, 'macos', '', '26', 1), (20772, 'processor', '', 'arm64', 1)";
        service.database.execute(check).await;
        let (_, headers, page) = ask(service, "/", &[]).await;
        let policy = headers["content-security-policy"].to_str().expect("a text");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("script") && !policy.contains("unsafe"));
        assert!(!page.contains("<script") && !page.contains(" style=") && !page.contains(" onclick="), "{page}");
        let charts: Vec<_> = page.split("<section class=\"chart").skip(1).collect();
        assert_eq!(charts.len(), 4);
        for chart in charts {
            let chart = chart.split("</section>").next().expect("its end");
            assert!(chart.contains("<svg") && chart.contains("<details>") && chart.contains("<table>"), "{chart}");
            let words = markup::texts(chart, "p").swap_remove(0);
            assert_eq!(page.matches(&words).count(), 1, "a screen reader would say it again: {words}");
        }
        for (before, drawing) in page.split("<svg").zip(page.split("<svg").skip(1)) {
            let hidden = drawing.split('>').next().expect("a tag").contains("aria-hidden=\"true\"");
            assert!(hidden || before.rfind("<div class=\"plot\" aria-hidden=\"true\">") > before.rfind("</section>"));
        }
        for file in markup::attributes(&page, "link", "href") {
            assert_eq!(ask(service, &file, &[]).await.0, 200, "{file}");
        }
    })
    .await;
}

#[tokio::test]
async fn joins_and_agent_calls_are_compared_with_yesterday() {
    for database in crate::harness::each_database().await {
        let service = Service::start(watched(), database.clone()).await;
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "get_download" } });
        for calls in [3, 2] {
            for _ in 0..calls {
                service.post("/mcp", &call).await;
                service
                    .post("/api/waitlist", &json!({ "email": "ada@example.com", "source": "claude" }))
                    .await
                    .expect_ok();
            }
            service.clock.advance(Duration::from_hours(24));
        }
        service.stop().await;
        let service = Service::start(watched(), database).await;
        service.clock.advance(Duration::from_hours(24));
        let page = page(&service).await;
        for name in ["Joins", "MCP tool calls"] {
            let tile = format!(
                "<dt>{name}</dt><dd class=\"tile-value\">2</dd><dd class=\"tile-note\">all of yesterday: 3</dd>"
            );
            assert!(page.contains(&tile), "{tile}\n{page}");
        }
        assert_eq!(rows(&page, "tools"), [["get_download", "5", "100 %"]]);
        assert_eq!(rows(&page, "sources"), [["claude", "0", "–", "5"]], "joins alone are no share of downloads");
        service.stop().await;
    }
}

#[tokio::test]
async fn the_share_of_a_source_is_that_of_all_downloads_and_no_number_is_invented() {
    on_each_database_with(watched(), async |service| {
        let sources: Vec<_> = (0..150).map(|n| format!("({TODAY}, 'source {n:03}', {}, 0, 0, 0)", 150 - n)).collect();
        let counts = format!(
            "INSERT INTO sources (day, source, downloads, new_people, opt_ins, joins) VALUES {}; \
             INSERT INTO counts (day, kind, via, name, times) VALUES ({TODAY}, 'download', 'site', '', 15000)",
            sources.join(", ")
        );
        service.database.execute(&counts).await;
        let page = page(service).await;
        let listed = rows(&page, "sources");
        assert_eq!((listed.len(), &listed[0]), (9, &["source 000", "150", "1 %", "0"].map(str::to_owned).to_vec()));
        assert_eq!(listed[8], ["all others", "13,828", "92 %", "0"]);
        assert!(!page.contains("92 more") && page.contains("names up to fifty sources"), "{page}");
    })
    .await;
}

#[tokio::test]
async fn what_a_stranger_calls_a_source_can_be_read_and_hides_nothing() {
    on_each_database_with(watched(), async |service| {
        for source in ["   ", "\u{200b}\u{200b}", "a\u{1b}[31m", "\u{202e}live", "two\nlines"] {
            let order = json!({ "email": "ada@example.com", "source": source });
            service.post("/api/download", &order).await.expect_ok();
        }
        let page = page(service).await;
        let hidden = |c: char| (c.is_control() && c != '\n') || ['\u{200b}', '\u{202e}'].contains(&c);
        assert!(!page.contains(hidden), "{page:?}");
        let mut names: Vec<_> = rows(&page, "sources").into_iter().map(|mut row| row.swap_remove(0)).collect();
        names.sort();
        assert_eq!(names, ["(blank)", "(blank)", "a\u{fffd}[31m", "two\u{fffd}lines", "\u{fffd}live"]);
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_stands_before_everything_else_and_every_command_on_the_page_is_one() {
    on_each_database_with(watched(), async |service| {
        launch(service).await;
        let quiet = page(service).await;
        assert!(
            quiet.contains("Everything <a href=\"#health\">works</a>.") && !quiet.contains("<title>Problem"),
            "{quiet}"
        );
        service.publish("1.4.0");
        std::fs::remove_file(service.releases_dir().join("Troupe-1.4.0.dmg")).expect("an image");
        service.database.execute("UPDATE outbox SET state = 'failed'").await;
        let page = page(service).await;
        let (before, _) = page.split_once("id=\"today\"").expect("today");
        assert!(before.contains("<title>Problem") && before.contains("Something is wrong"), "{before}");
        assert!(before.contains("<a href=\"#mail\">Mail</a>: 1 message failed."), "{before}");
        assert!(before.contains("<a href=\"#health\">Newest image</a>: Troupe-1.4.0.dmg cannot be read"), "{before}");
        // The steps of a new site need words of the makers.
        let (_, page) = page.split_once("id=\"today\"").expect("today");
        for command in markup::texts(page, "code") {
            let words: Vec<_> = command.split_whitespace().skip(1).collect();
            let mut program = Program::command(&service.releases_dir(), &words);
            program.args(["--database-url", service.database.url()]);
            let (code, output) = Program::run(program);
            assert_eq!(code, 0, "{command}: {output}");
        }
        assert!(page.contains("<code>porchlight inbox retry --all</code>"), "{page}");
    })
    .await;
}

#[tokio::test]
async fn the_latest_letter_has_a_name_and_a_date() {
    on_each_database_with(watched(), async |service| {
        launch(service).await;
        let letter = "INSERT INTO letters (id, subject, started_at, sent, bounced) \
             VALUES ('a', 'What <b>is</b> new', 1794657600000, 2, 1), ('b', 'What was new', 1792065600000, 7, 7), \
                 ('c', 'Not started yet', NULL, 0, 0)";
        service.database.execute(letter).await;
        let page = page(service).await;
        let named = "“<bdi>What &lt;b&gt;is&lt;&#x2f;b&gt; new</bdi>”, started on 14 Nov 2026, to 2 people.";
        assert!(page.contains(named), "{page}");
        let (_, states) = page.split_once("The latest letter").expect("a heading");
        for (state, count) in [("sent", "2"), ("skipped", "0"), ("bounced", "1")] {
            let row = markup::texts(states, "tr").into_iter().find(|row| row.contains(state)).expect(state);
            assert_eq!(markup::texts(&row, "td")[0], count, "{row}");
        }
        let (_, _, metrics) = ask(service, "/metrics", &[]).await;
        assert!(metrics.contains("\nporchlight_letter_bounced_recipients 1\n"), "{metrics}");
    })
    .await;
}

#[tokio::test]
async fn downloads_of_an_image_hosted_elsewhere_are_shown_as_uncounted() {
    on_one_database_with(watched(), async |service| {
        service.publish("1.3.0");
        service.get("/releases/Troupe-1.3.0.dmg").await;
        let sha256 = "a".repeat(64);
        let elsewhere = ["publish", "--url", "https://files.example/a.dmg", "--length", "7", "--sha256", &sha256];
        let (code, output) = service.release(&[&elsewhere[..], &["--version", "1.4.0"]].concat());
        assert_eq!(code, 0, "{output}");
        let page = page(service).await;
        let tile = "<dd class=\"tile-value\">1.4.0</dd><dd class=\"tile-note\">its image is on another host";
        assert!(page.contains(tile), "{page}");
    })
    .await;
}

#[tokio::test]
async fn it_reloads_every_minute_on_request() {
    on_one_database_with(watched(), async |service| {
        let (_, headers, page) = ask(service, "/?by=week", &[]).await;
        assert!(!headers.contains_key("refresh"));
        let links = markup::attributes(&page, "a", "href");
        assert!(links.contains(&"/?by=week&reload=minute".to_owned()), "{links:?}");
        let (_, headers, page) = ask(service, "/?by=week&reload=minute", &[]).await;
        assert_eq!(headers["refresh"], "60");
        let links = markup::attributes(&page, "a", "href");
        for way in ["/?by=week", "/?by=day&reload=minute", "/?by=month&reload=minute"] {
            assert!(links.contains(&way.to_owned()), "{way}: {links:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn it_looks_the_same_whatever_is_in_site_dir() {
    let site = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(site.path().join("assets")).expect("a folder");
    std::fs::write(site.path().join("assets/style.css"), "* { display: none }").expect("a file");
    std::fs::write(site.path().join("assets/serif.woff2"), "no font").expect("a file");
    let written = RawSettings { site_dir: Some(site.path().display().to_string()), ..watched() };
    on_one_database_with(written, async |service| {
        let styles: Vec<_> = markup::attributes(&page(service).await, "link", "href");
        assert!(styles[0].starts_with("/dashboard.css?") && styles.len() == 2, "the style and the icon: {styles:?}");
        let (_, _, style) = ask(service, "/dashboard.css", &[]).await;
        assert!(style.contains("url(\"serif.woff2\")") && !style.contains("/assets/"), "{style}");
        let (status, headers, font) = ask(service, "/serif.woff2", &[]).await;
        assert_eq!((status, headers["content-type"].as_bytes()), (200, b"font/woff2".as_slice()));
        assert!(font.starts_with("wOF2"), "the font that comes along");
    })
    .await;
}

#[tokio::test]
async fn without_the_database_the_dashboard_says_so() {
    let database = Database::postgres().await;
    let service = Service::start(watched(), database).await;
    service.database.refuse_connections().await;
    let (status, _, page) = ask(&service, "/", &[]).await;
    assert_eq!(status, 503);
    assert!(page.contains("Statistics</a>: unavailable: ") && page.contains("<dt>Database</dt>"), "{page}");
    service.database.accept_connections().await;
    service.stop().await;
}

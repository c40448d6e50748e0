//! The dashboard: one page that shows how the launch goes, to eyes and to screen readers.

use serde_json::json;

use super::{ask, watched};
use crate::harness::{Database, Service, markup, on_each_database_with};

/// A day of a launch: three downloads, of which one by somebody known, an opt-in, and a message.
async fn launch(service: &Service) {
    for (email, updates, source) in [("ada", true, "<b>hn</b>"), ("bob", false, "<b>hn</b>"), ("ada", false, "")] {
        let order = json!({ "email": format!("{email}@example.com"), "updates": updates, "source": source });
        service.post("/api/download", &order).await.is_ok();
    }
    service.post("/api/contact", &json!({ "email": "cyd@example.com", "message": "A secret" })).await.is_ok();
}

#[tokio::test]
async fn the_page_tells_how_the_launch_goes_and_nothing_of_anybody() {
    on_each_database_with(watched(), async |service| {
        let (status, _, empty) = ask(service, "/", &[]).await;
        assert_eq!(status, 200);
        assert!(empty.contains("Nobody yet."), "{empty}");
        launch(service).await;
        let (status, headers, page) = ask(service, "/", &[]).await;
        assert_eq!((status, headers["content-type"].as_bytes()), (200, b"text/html; charset=utf-8".as_slice()));
        assert!(page.contains("3 downloads and 2 new people since 17 Oct. The most were 3 (15 Nov)."), "{page}");
        assert!(page.contains("50 % of new people since 17 Oct asked for the monthly email."), "{page}");
        assert!(page.contains("15 Nov: 3 downloads, 2 new people"), "what the pointer rests on is told");
        assert!(page.contains("<dt>Messages that wait</dt><dd>1, the oldest for less than a minute</dd>"), "{page}");
        assert!(page.contains("&lt;b&gt;hn") && !page.contains("<b>"), "a source is a stranger's text");
        assert!(!page.contains("example.com") && !page.contains("secret"), "{page}");
        for (by, begins) in [("week", "since week of 17 Aug"), ("month", "since Dec 2025")] {
            let (status, _, page) = ask(service, &format!("/?by={by}"), &[]).await;
            assert!(status == 200 && page.contains(begins), "{page}");
        }
    })
    .await;
}

#[tokio::test]
async fn it_needs_no_script_and_every_drawing_has_words_and_a_table() {
    on_each_database_with(watched(), async |service| {
        launch(service).await;
        let (_, headers, page) = ask(service, "/", &[]).await;
        let policy = headers["content-security-policy"].to_str().expect("a text");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("script") && !policy.contains("unsafe"));
        assert!(!page.contains("<script") && !page.contains(" style=") && !page.contains(" onclick="), "{page}");
        let drawings: Vec<_> = page.split("<figure").skip(1).collect();
        assert_eq!(drawings.len(), 2);
        for drawing in drawings {
            let drawing = drawing.split("</figure>").next().expect("its end");
            assert!(drawing.contains("role=\"img\"") && drawing.contains("<details>") && drawing.contains("<table>"));
            for name in &markup::attributes(drawing, "svg", "aria-labelledby") {
                assert!(name.split(' ').all(|id| drawing.contains(&format!("id=\"{id}\""))), "{name}");
            }
        }
        let unnamed = markup::attributes(&page, "svg", "aria-hidden").len() + 2;
        assert_eq!(page.matches("<svg").count(), unnamed, "a drawing has a name, or is none to a screen reader");
        for style in markup::attributes(&page, "link", "href") {
            assert_eq!(ask(service, &style, &[]).await.0, 200, "{style}");
        }
    })
    .await;
}

#[tokio::test]
async fn calls_of_agents_are_told_beside_those_of_yesterday() {
    for database in crate::harness::each_database().await {
        let service = Service::start(watched(), database.clone()).await;
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "get_download" } });
        for calls in [3, 2] {
            for _ in 0..calls {
                service.post("/mcp", &call).await;
            }
            service.clock.advance(std::time::Duration::from_hours(24));
        }
        service.stop().await;
        let service = Service::start(watched(), database).await;
        service.clock.advance(std::time::Duration::from_hours(24));
        let (_, _, page) = ask(&service, "/", &[]).await;
        let tile = "<dt>Agents’ calls</dt><dd class=\"tile-value\">2</dd><dd class=\"tile-note\">3 yesterday</dd>";
        assert!(page.contains(tile) && page.contains("<th scope=\"row\">get_download"), "{page}");
        service.stop().await;
    }
}

#[tokio::test]
async fn without_the_database_it_says_so() {
    let database = Database::postgres().await;
    let service = Service::start(watched(), database).await;
    service.database.close_the_door().await;
    let (status, _, page) = ask(&service, "/", &[]).await;
    assert_eq!(status, 503);
    assert!(page.contains("Nothing can be shown") && page.contains("<dt>Database</dt>"), "{page}");
    service.database.open_the_door().await;
    service.stop().await;
}

//! What holds for every page of the desk: whose request is believed, what strangers wrote, and what browsers are told.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::private;
use crate::harness::{Answer, MakerBrowser, Service, markup, on_each_database_with, on_one_database_with};
use crate::people::json_of;

/// What a stranger may call themselves and write.
const HOSTILE: &str =
    "<script>alert(1)</script><img src=x onerror=alert(1)>\"'--></title>&lt;b&gt;{{ 7000*7 }}\u{202e}";

/// A message and a person of a stranger, and the pages that show them.
async fn pages(service: &Service, browser: &MakerBrowser<'_>) -> Vec<(String, Answer)> {
    let message = json!({ "name": HOSTILE, "email": "a'b&c=d`e@example.com", "message": HOSTILE });
    service.post("/api/contact", &message).await.expect_ok();
    let order = json!({ "email": "a'b&c=d`e@example.com", "updates": true, "source": &HOSTILE[..25] });
    service.post("/api/download", &order).await.expect_ok();
    let set = "UPDATE outbox SET state = 'failed', last_error = '<script>alert(2)</script>'";
    service.database.execute(set).await;
    let id = json_of(service, &["inbox", "list", "--json"])[0]["id"].as_str().expect("an id").to_owned();
    let notes = service.file("notes.md", HOSTILE.replace('\u{202e}', ""));
    service.publish_with("1.4.0", &["--notes", notes.to_str().expect("a path in UTF-8")]);
    let list = browser.get("/desk/people").await.text();
    let person = markup::attributes(&list, "a", "href").into_iter().find(|link| link.contains('-')).expect("a person");
    let mut pages = Vec::new();
    for path in [
        "/desk".to_owned(),
        "/desk?by=month".to_owned(),
        "/desk/inbox".to_owned(),
        "/desk/inbox?filter=failed".to_owned(),
        format!("/desk/inbox/{id}"),
        format!("/desk/inbox/{id}/discard"),
        "/desk/people".to_owned(),
        person,
        "/desk/releases".to_owned(),
        "/desk/release/1.4.0".to_owned(),
        "/desk/release/1.4.0/withdraw".to_owned(),
        "/desk/site".to_owned(),
        "/desk/site/check".to_owned(),
        "/desk/activity".to_owned(),
        "/desk/sign-in".to_owned(),
    ] {
        pages.push((path.clone(), browser.get(&path).await));
    }
    let email = ("email", "a'b&c=d`e@example.com");
    for (path, fields) in [
        ("/desk/inbox", &[("search", "<script>")][..]),
        ("/desk/people", &[("search", "a'b&")]),
        ("/desk/people", &[("search", HOSTILE)]),
        ("/desk/people/person", &[("email", "a'b&c=d`f@example.com")]),
        ("/desk/people/erase", &[email]),
        ("/desk/people/erase", &[email, ("sure", "yes")]),
    ] {
        pages.push((format!("{path} {fields:?}"), browser.post(path, fields).await));
    }
    pages
}

#[tokio::test]
async fn what_strangers_write_is_text_on_every_page() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        let mut shown = 0;
        for (path, answer) in pages(service, &browser).await {
            let page = answer.text();
            assert_eq!(answer.status, 200, "{path}: {page}");
            assert!(!page.contains("alert(1)</") && !page.contains("<img src=x"), "{path}: {page}");
            assert!(!page.contains('\u{202e}') && !page.contains("49000"), "{path}: {page}");
            let scripts = markup::attributes(&page, "script", "src");
            assert!(scripts.len() == 1 && page.matches("<script").count() == 1, "{path}: {page}");
            assert!(!page.contains(" style=") && !page.contains(" onclick="), "{path}");
            shown += usize::from(page.contains("&lt;script&gt;alert(1)"));
        }
        assert!(shown >= 8, "on {shown} pages");
    })
    .await;
}

#[tokio::test]
async fn every_page_is_private_to_the_browser_and_to_its_frame() {
    on_one_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        let mut pages = pages(service, &browser).await;
        pages.push(("an unknown page".to_owned(), browser.get("/desk/nothing").await));
        pages.push(("a refused change".to_owned(), browser.post_from("/desk/sign-out", &[], &[]).await));
        let put = browser.send(Method::PUT, "/desk/inbox", &[], "").await;
        assert_eq!(put.header("allow"), "GET, HEAD, POST");
        pages.push(("another method".to_owned(), put));
        pages.push((
            "another host".to_owned(),
            browser.send(Method::GET, "/desk", &[("host", "evil.example")], "").await,
        ));
        for (path, answer) in pages {
            assert_eq!(answer.header("cache-control"), "no-store", "{path}");
            assert_eq!(answer.header("x-robots-tag"), "noindex", "{path}");
            assert_eq!(answer.header("referrer-policy"), "strict-origin", "{path}");
            let policy = answer.header("content-security-policy");
            for part in ["default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"] {
                assert!(policy.contains(part) && !policy.contains("unsafe"), "{path}: {policy}");
            }
        }
    })
    .await;
}

/// Every change that a page of the desk offers.
const CHANGES: [&str; 29] = [
    "sign-out",
    "inbox",
    "inbox/retry",
    "inbox/ID/answered",
    "inbox/ID/unanswered",
    "inbox/ID/retry",
    "inbox/ID/discard",
    "people",
    "people/person",
    "people/record",
    "people/suppress",
    "people/unsuppress",
    "people/erase",
    "letters/new",
    "letters/drafts/ID/send",
    "letters/drafts/ID/delete",
    "letters/drafts/ID/images/remove",
    "letters/ID/stop",
    "letters/ID/go-on",
    "letters/ID/copy",
    "letters/ID/recipients",
    "releases",
    "release/1.4.0",
    "release/1.4.0/withdraw",
    "release/1.4.0/restore",
    "notes",
    "site/read-again",
    "sessions/end",
    "sessions/end-all",
];

#[tokio::test]
async fn every_change_needs_a_session_and_a_page_of_the_desk() {
    on_each_database_with(private(), async |service| {
        service.post("/api/contact", &json!({ "email": "ada@example.com", "message": "Hello" })).await.expect_ok();
        service.post("/api/download", &json!({ "email": "ada@example.com" })).await.expect_ok();
        service.publish("1.4.0");
        let browser = MakerBrowser::signed_in(service).await;
        let stranger = MakerBrowser::on_ops_listener(service);
        let id = json_of(service, &["inbox", "list", "--json"])[0]["id"].as_str().expect("an id").to_owned();
        let before = format!("{:?}", service.database.everything().await);
        let fields = [("email", "ada@example.com"), ("sure", "yes"), ("search", "ada"), ("id", &id)];
        for path in CHANGES.map(|path| format!("/desk/{}", path.replace("ID", &id))) {
            let refused = stranger.post(&path, &fields).await;
            assert!(
                refused.status == 403 && refused.text().contains("Your session has ended."),
                "{path}: {}",
                refused.status
            );
            for from in [
                &[][..],
                &[("sec-fetch-site", "cross-site")],
                &[("sec-fetch-site", "same-site")],
                &[("origin", "null")],
            ] {
                let refused = browser.post_from(&path, &fields, from).await;
                assert!(
                    refused.status == 403 && refused.text().contains("did not come from a page of the desk"),
                    "{path}"
                );
            }
            assert_eq!(stranger.get(&path).await.location(), "/desk/sign-in", "{path}");
            let read = browser.get(&path).await.status;
            assert!([200, 404].contains(&read.as_u16()), "{path}: {read}");
        }
        assert_eq!(format!("{:?}", service.database.everything().await), before, "nothing was changed");
        assert_eq!(browser.get("/desk").await.status, 200);
        service.clock.advance(Duration::from_hours(31 * 24));
        assert_eq!(browser.post("/desk/inbox", &fields).await.status, 403, "the session has ended");
    })
    .await;
}

#[tokio::test]
async fn the_overview_leads_to_the_page_that_publishes_and_says_what_is_true_of_an_empty_service() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        let page = browser.get("/desk").await.text();
        let step = "Publish your own on the page <a href=\"/desk/releases\">Releases</a>.";
        assert!(page.contains(step) && !page.contains("release publish"), "{page}");
        assert!(page.contains("set <code>base_url</code> to the public URL"), "{page}");
        let text = markup::main_text(&page);
        assert!(text.contains("works, as a sample: nothing is published yet"), "{text}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).contains("refused by this instance since it started. None. Health"), "{text}");
        service.publish("1.4.0");
        let page = browser.get("/desk").await.text();
        assert!(!page.contains(step) && !page.contains("as a sample"), "{page}");
        let cookies = browser.cookies();
        browser.set_cookie(cookies.keys().next().expect("a session"), &"0".repeat(64));
        browser.get("/desk").await;
        browser.sign_in(&[]).await;
        let text = markup::main_text(&browser.get("/desk").await.text());
        let (_, refused) = text.split_once("since it started.").expect("the refusals");
        let refused = words(refused.split("Health").next().expect("them"));
        assert!(
            refused.starts_with("Wrong tokens at the desk ") && !refused.contains(" 0"),
            "only what there was: {refused}"
        );
    })
    .await;
}

#[tokio::test]
async fn the_checks_are_those_of_the_command() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        let page = browser.get("/desk/site/check").await.text();
        let printed = json_of(service, &["check", "--json"]);
        let names: Vec<_> =
            printed["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
        // The tests set variables that a command does not get.
        let mut shown = markup::texts(&page, "b");
        shown.retain(|name| name != "environment");
        assert_eq!(shown[..names.len()], names, "{page}");
        assert!(page.contains("Nothing failed.") && page.contains("<code>porchlight release publish"), "{page}");
    })
    .await;
}

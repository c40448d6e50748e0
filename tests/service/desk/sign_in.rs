//! Signing in to the desk, sessions, and which requests are believed.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use porchlight::config::RawSettings;
use reqwest::Method;
use serde_json::json;

use super::{open, private, run};
use crate::harness::{
    Database, MailServer, MakerBrowser, Program, Service, each_migrated_database, markup, on_each_database_with,
    on_one_database_with, raw, sign_in_path, wait_until,
};

const BASE: &str = "https://troupe.example";

fn public() -> RawSettings {
    RawSettings { desk: Some("public".to_owned()), ..open() }
}

fn mailing(server: &MailServer) -> RawSettings {
    RawSettings {
        smtp_url: Some(server.url()),
        mail_from: Some("Troupe <hello@troupe.example>".to_owned()),
        contact_to: Some("makers@troupe.example".to_owned()),
        desk_email: Some("ada@troupe.example".to_owned()),
        ..public()
    }
}

/// Where the page of a signed-in maker leads who is not signed in.
const SIGNED_OUT: (u16, &str) = (303, "/desk/sign-in");

async fn overview(browser: &MakerBrowser<'_>) -> (u16, String) {
    let answer = browser.get("/desk").await;
    (answer.status.as_u16(), answer.location().to_owned())
}

fn is_signed_out((status, location): (u16, String)) -> bool {
    (status, location.as_str()) == SIGNED_OUT
}

#[tokio::test]
async fn a_link_signs_in_once_and_a_program_that_opens_it_changes_nothing() {
    on_each_database_with(private(), async |service| {
        let (scanner, ada, other) = (
            MakerBrowser::on_ops_listener(service),
            MakerBrowser::on_ops_listener(service),
            MakerBrowser::on_ops_listener(service),
        );
        let link = sign_in_path(service, &["--name", "ada"]);
        for method in [Method::GET, Method::HEAD, Method::GET] {
            assert_eq!(scanner.send(method, &link, &[], "").await.status, 200);
        }
        assert!(is_signed_out(overview(&scanner).await), "a scanner of mails has no session");
        assert!(is_signed_out(overview(&ada).await));
        assert_eq!(ada.post(&link, &[]).await.location(), "/desk");
        let page = ada.get("/desk").await;
        assert!(page.status == 200 && page.text().contains("<h1>Overview</h1>") && page.text().contains(">ada<"));
        for refused in [other.post(&link, &[]).await, other.get(&link).await] {
            assert!(refused.status == 422 && refused.text().contains("This link does not work"), "{}", refused.text());
        }
        assert!(is_signed_out(overview(&other).await));
        let late = sign_in_path(service, &[]);
        service.clock.advance(Duration::from_mins(10));
        assert_eq!(other.post(&late, &[]).await.status, 422, "after ten minutes");
        let invented = format!("/desk/sign-in/{}", "ab".repeat(32));
        for wrong in [invented.as_str(), "/desk/sign-in/x", "/desk/sign-in/"] {
            assert_eq!(other.post(wrong, &[]).await.status, 422, "{wrong}");
        }
        assert_eq!(overview(&ada).await.0, 200);
    })
    .await;
}

#[tokio::test]
async fn a_session_lasts_thirty_days_and_ends_at_the_desk_or_by_command() {
    on_each_database_with(private(), async |service| {
        let [ada, bob, cyd] = std::array::from_fn(|_| MakerBrowser::on_ops_listener(service));
        ada.sign_in(&["--name", "ada"]).await;
        service.clock.advance(Duration::from_hours(24));
        bob.sign_in(&["--name", "bob"]).await;
        cyd.sign_in(&["--name", "cyd"]).await;
        let site = bob.get("/desk/site").await.text();
        let ids = markup::attributes(&site, "input", "value");
        assert!(
            ids.len() == 3 && ["ada", "bob", "cyd"].iter().all(|name| site.contains(&format!("<bdi>{name}</bdi>")))
        );
        assert_eq!(bob.post("/desk/sessions/end", &[("id", &ids[0])]).await.status, 303, "the newest");
        assert!(is_signed_out(overview(&cyd).await) && overview(&bob).await.0 == 200);
        assert_eq!(bob.post("/desk/sessions/end", &[("id", &ids[0])]).await.status, 404, "is gone");
        service.clock.advance(Duration::from_hours(29 * 24));
        assert!(is_signed_out(overview(&ada).await), "after thirty days, used or not");
        assert_eq!(overview(&bob).await.0, 200);
        let cookies = bob.cookies();
        assert_eq!(bob.post("/desk/sign-out", &[]).await.location(), "/desk/sign-in?done=signed-out");
        assert!(bob.cookies().is_empty());
        for (name, value) in &cookies {
            bob.set_cookie(name, value);
        }
        assert!(is_signed_out(overview(&bob).await), "whoever kept the cookie has nothing");

        let again = [MakerBrowser::signed_in(service).await, MakerBrowser::signed_in(service).await];
        let unused = sign_in_path(service, &[]);
        let (code, _, said) = run(service, &["desk", "--end-all"]);
        assert!(code == 0 && said.contains("All sessions are ended"), "{said}");
        for browser in &again {
            assert!(is_signed_out(overview(browser).await));
        }
        assert_eq!(bob.post(&unused, &[]).await.status, 422, "a link that was not used, too");
        let last = MakerBrowser::signed_in(service).await;
        let activity = last.get("/desk/activity").await.text();
        for did in ["ended all sessions", "made a link that signs ada in", "signed out", "ended a session of cyd"] {
            assert!(activity.contains(did), "{did}: {activity}");
        }
        assert_eq!(last.post("/desk/sessions/end-all", &[]).await.status, 303);
        assert!(is_signed_out(overview(&last).await));
    })
    .await;
}

#[tokio::test]
async fn a_session_begins_with_a_cookie_that_nobody_knew_before() {
    on_one_database_with(private(), async |service| {
        let browser = MakerBrowser::on_ops_listener(service);
        let (name, planted) = (format!("porchlight-desk-{}", service.ops_address().port()), "ab".repeat(32));
        browser.set_cookie(&name, &planted);
        browser.sign_in(&[]).await;
        assert_ne!(browser.cookies()[&name], planted);
        let attacker = MakerBrowser::on_ops_listener(service);
        attacker.set_cookie(&name, &planted);
        assert!(is_signed_out(overview(&attacker).await));
    })
    .await;
}

#[tokio::test]
async fn a_change_has_to_come_from_a_page_of_the_desk() {
    on_each_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        let own = format!("http://{}", service.ops_address());
        let near = "http://127.0.0.1:9".to_owned();
        for (headers, is_own) in [
            (vec![("sec-fetch-site", "same-origin")], true),
            (vec![("origin", own.as_str())], true),
            (vec![], false),
            (vec![("sec-fetch-site", "none")], false),
            (vec![("sec-fetch-site", "cross-site"), ("origin", own.as_str())], false),
            // Another port of this machine, which gets the same cookies.
            (vec![("sec-fetch-site", "same-site")], false),
            (vec![("origin", near.as_str())], false),
            (vec![("origin", "null")], false),
            (vec![("origin", "http://evil.example"), ("referer", own.as_str())], false),
        ] {
            let answer = browser.post_from("/desk/site/read-again", &[], &headers).await;
            assert_eq!(answer.status, if is_own { 303 } else { 403 }, "{headers:?}");
        }
        let revision = service.database.texts("SELECT CAST(number AS TEXT) FROM revisions WHERE name = 'site'").await;
        assert_eq!(revision, ["2"], "the two that were believed");
        // A link of somebody else signs nobody in from another page, either.
        let link = sign_in_path(service, &[]);
        assert_eq!(browser.post_from(&link, &[], &[("sec-fetch-site", "cross-site")]).await.status, 403);
        for method in [Method::PUT, Method::DELETE, Method::PATCH] {
            let sent = browser.send(method, "/desk/site/read-again", &[("sec-fetch-site", "same-origin")], "").await;
            assert_eq!(sent.status, 405);
        }
        assert_eq!(browser.get("/desk/site/read-again").await.status, 404, "reading changes nothing");
    })
    .await;
}

#[tokio::test]
async fn another_name_for_this_machine_leads_nowhere() {
    on_one_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        for (host, status) in [
            ("localhost:1", 200),
            ("[::1]:1", 200),
            ("evil.example", 403),
            ("127.0.0.1.evil.example", 403),
            ("192.0.2.1", 403),
            ("user@evil.example", 403),
        ] {
            let answer = browser.send(Method::GET, "/desk/sign-in", &[("host", host)], "").await;
            assert_eq!(answer.status, status, "{host}");
            let reread = [("host", host), ("sec-fetch-site", "same-origin")];
            let answer = browser.send(Method::POST, "/desk/site/read-again", &reread, "").await;
            assert_eq!(answer.status, 403, "{host}: the cookie is that of another port");
        }
        let twice = "GET /desk HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
        assert!(raw(service.ops_address(), twice).await.starts_with("HTTP/1.1 400 "));
    })
    .await;
}

#[tokio::test]
async fn a_private_desk_is_an_unknown_path_of_the_site() {
    for settings in [private(), open()] {
        on_one_database_with(settings, async |service| {
            let unknown = service.get("/no-such-page").await;
            for path in ["/desk", "/desk/sign-in", "/desk/dashboard.css", "/desk/desk.js", "/desk/x", "/desk/site"] {
                let answer = service.get(path).await;
                assert_eq!((answer.status, answer.text()), (unknown.status, unknown.text()), "{path}");
                assert_eq!(
                    service.send(Method::POST, path, &[("sec-fetch-site", "same-origin")], "").await.status,
                    404
                );
            }
            for file in ["/robots.txt", "/sitemap.xml", "/llms.txt", "/"] {
                assert!(!service.get(file).await.text().contains("/desk"), "{file}");
            }
        })
        .await;
    }
}

#[tokio::test]
async fn at_the_public_url_the_cookie_is_for_https_and_this_host_alone() {
    on_each_database_with(public(), async |service| {
        let browser = MakerBrowser::on_public_listener(service);
        let link = sign_in_path(service, &["--desk", "public", "--base-url", BASE]);
        let begun = browser.post_from(&link, &[], &[("origin", BASE)]).await;
        let cookie = begun.headers["set-cookie"].to_str().expect("a text");
        assert!(cookie.starts_with("__Host-porchlight-desk=") && !cookie.contains("Domain"), "{cookie}");
        for attribute in ["; Path=/;", "; HttpOnly", "; SameSite=Strict", "; Secure"] {
            assert!(cookie.contains(attribute), "{cookie}");
        }
        let page = browser.get("/desk").await;
        assert_eq!(page.status, 200);
        for (name, value) in
            [("cache-control", "no-store"), ("x-robots-tag", "noindex"), ("referrer-policy", "strict-origin")]
        {
            assert_eq!(page.headers[name], value);
        }
        let policy = page.headers["content-security-policy"].to_str().expect("a text");
        for part in ["default-src 'none'", "script-src 'self'", "form-action 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert_eq!(browser.post_from("/desk/site/read-again", &[], &[("origin", BASE)]).await.status, 303);
        assert_eq!(
            browser.post_from("/desk/site/read-again", &[], &[("origin", "http://troupe.example")]).await.status,
            403
        );
        // On the ops listener the same session has another cookie, which the browser does not have.
        let local = MakerBrowser::on_ops_listener(service);
        for (name, value) in browser.cookies() {
            local.set_cookie(&name, &value);
        }
        assert!(is_signed_out(overview(&local).await));
    })
    .await;
}

/// The link in a mail to sign in.
fn link_in(text: &str) -> String {
    let (_, token) = text.split_once(&format!("{BASE}/desk/sign-in/")).expect("a link");
    format!("/desk/sign-in/{}", token.split_whitespace().next().expect("a token"))
}

#[tokio::test]
async fn a_link_is_mailed_to_the_maker_alone_and_works_in_the_browser_that_asked() {
    let mut server = MailServer::start().await;
    let settings = mailing(&server);
    for database in each_migrated_database().await {
        let service = Service::start(settings.clone(), database).await;
        let (ada, other) = (MakerBrowser::on_public_listener(&service), MakerBrowser::on_public_listener(&service));
        assert!(ada.get("/desk/sign-in").await.text().contains("Mail me a link"));
        let asked = ada.post("/desk/sign-in", &[("email", "eve@evil.example")]).await;
        assert_eq!((asked.status.as_u16(), asked.location()), (303, "/desk/sign-in?asked"));
        let mail = server.next_mail().await;
        assert_eq!((mail.header("to"), mail.header("subject")), ("ada@troupe.example", "Sign in to the desk"));
        let link = link_in(&mail.text);
        assert_eq!(other.get(&link).await.status, 200, "whoever opens it sees a button");
        assert_eq!(other.post(&link, &[]).await.status, 422, "which works in the other browser");
        assert_eq!(ada.post(&link, &[]).await.location(), "/desk");
        assert!(ada.get("/desk").await.text().contains(">ada<"), "by the name before the @");
        service.stop().await;
    }
}

#[tokio::test]
async fn at_most_thirty_links_are_mailed_in_an_hour_and_the_answer_is_always_the_same() {
    let mut server = MailServer::start().await;
    let settings = mailing(&server);
    for database in each_migrated_database().await {
        let service = Service::start(settings.clone(), database).await;
        let browser = MakerBrowser::on_public_listener(&service);
        for _ in 0..35 {
            let asked = browser.post("/desk/sign-in", &[]).await;
            assert_eq!((asked.status.as_u16(), asked.location()), (303, "/desk/sign-in?asked"));
        }
        for _ in 0..30 {
            server.next_mail().await;
        }
        assert_eq!(service.database.number("SELECT COUNT(*) FROM sign_in_links").await, 30);
        wait_until("no mail with a link is kept", async || {
            service.database.number("SELECT COUNT(*) FROM outbox WHERE kind = 'sign-in'").await == 0
        })
        .await;
        service.clock.advance(Duration::from_hours(1));
        browser.post("/desk/sign-in", &[]).await;
        server.next_mail().await;
        service.stop().await;
    }
}

#[tokio::test]
async fn a_link_that_expired_before_it_could_be_mailed_is_dropped() {
    let mut server = MailServer::start().await;
    server.command("reply recipient 451 4.3.0 later").await;
    let service = Service::start(mailing(&server), Database::migrated_sqlite().await).await;
    let browser = MakerBrowser::on_public_listener(&service);
    browser.post("/desk/sign-in", &[]).await;
    let tried = "SELECT COUNT(*) FROM outbox WHERE kind = 'sign-in' AND tries > 0";
    wait_until("a try", async || service.database.number(tried).await == 1).await;
    service.clock.advance(Duration::from_mins(10));
    service.post("/api/contact", &json!({ "email": "ada@example.com", "message": "Hello" })).await.expect_ok();
    let left = "SELECT COUNT(*) FROM outbox WHERE kind = 'sign-in'";
    wait_until("it is dropped", async || service.database.number(left).await == 0).await;
    service.stop().await;
}

/// Sends this many invented links and cookies, many at once.
async fn guess(count: u32) {
    on_one_database_with(public(), async |service| {
        let guesser = MakerBrowser::on_public_listener(service);
        let guess = async |number: u32| {
            let token = format!("{number:064x}");
            match number % 3 {
                0 => guesser.post(&format!("/desk/sign-in/{token}"), &[]).await.status,
                1 => guesser.get(&format!("/desk/sign-in/{token}")).await.status,
                _ => {
                    let cookie = format!("__Host-porchlight-desk={token}");
                    guesser.send(Method::GET, "/desk", &[("cookie", &cookie)], "").await.status
                }
            }
        };
        for first in (0..count).step_by(500) {
            let statuses = join_all((first..first + 500).map(guess)).await;
            assert!(statuses.iter().all(|status| [303, 422, 503].contains(&status.as_u16())), "{statuses:?}");
        }
        assert_eq!(service.database.number("SELECT COUNT(*) FROM sessions").await, 0);
        let ada = MakerBrowser::on_public_listener(service);
        let link = sign_in_path(service, &["--desk", "public", "--base-url", BASE]);
        assert_eq!(ada.post(&link, &[]).await.location(), "/desk", "the right one works at once");
    })
    .await;
}

#[tokio::test]
async fn wrong_links_and_cookies_let_nobody_in() {
    guess(1000).await;
}

#[tokio::test]
#[ignore = "takes half a minute"]
async fn ten_thousand_wrong_links_and_cookies_let_nobody_in() {
    guess(10_000).await;
}

#[tokio::test]
async fn a_cookie_that_was_sent_in_clear_on_this_machine_opens_nothing_at_the_public_url() {
    on_one_database_with(public(), async |service| {
        let (local, public) = (MakerBrowser::signed_in(service).await, MakerBrowser::on_public_listener(service));
        let (_, secret) = local.cookies().pop_first().expect("a cookie");
        public.set_cookie("__Host-porchlight-desk", &secret);
        assert!(is_signed_out(overview(&public).await));
        assert_eq!(overview(&local).await.0, 200);
        let (link, again) = (sign_in_path(service, &[]), sign_in_path(service, &[]));
        local.set_cookie("theme", "dark");
        assert_eq!(local.post(&link, &[]).await.location(), "/desk");
        assert_eq!(service.database.number("SELECT COUNT(*) FROM sessions").await, 1, "that of before has ended");
        let proxied = [("sec-fetch-site", "same-origin"), ("x-forwarded-for", "203.0.113.9")];
        assert_eq!(
            local.post_from(&again, &[], &proxied).await.status,
            403,
            "a proxy on this machine leads nobody here"
        );
    })
    .await;
}

#[tokio::test]
async fn who_guesses_at_the_public_url_holds_up_neither_the_ops_listener_nor_readers() {
    on_one_database_with(public(), async |service| {
        let ada = MakerBrowser::signed_in(service).await;
        let guesser = MakerBrowser::on_public_listener(service);
        let guess = async |number: u32| {
            let cookie = format!("__Host-porchlight-desk={number:064x}");
            guesser.send(Method::GET, "/desk", &[("cookie", &cookie)], "").await.status
        };
        let unsubscribe = format!("/unsubscribe/{}", "ab".repeat(20));
        let both = async {
            for _ in 0..20 {
                assert_eq!(overview(&ada).await.0, 200);
                assert_eq!(service.get(&unsubscribe).await.status, 404);
            }
        };
        tokio::join!(join_all((0..300).map(guess)), both);
        let (_, _, metrics) = crate::ops::ask(service, "/metrics", &[]).await;
        let counted = metrics.lines().find(|line| line.contains("reason=\"wrong_tokens\"")).expect("a count");
        assert!(!counted.ends_with(" 0"), "invented cookies are counted: {counted}");
    })
    .await;
}

#[tokio::test]
async fn a_restored_backup_lets_nobody_in() {
    on_one_database_with(private(), async |service| {
        let browser = MakerBrowser::signed_in(service).await;
        browser.post("/desk/site/read-again", &[]).await;
        let (folder, data) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let backup = folder.path().join("backup").display().to_string();
        assert_eq!(run(service, &["backup", &backup]).0, 0);
        let data = data.path().display().to_string();
        let output = Program::run_to_end(&mut service.command(&["restore", &backup, "--data-dir", &data]));
        assert!(output.status.success());
        let restored = Database::sqlite_at(&Path::new(&data).join("porchlight.db"));
        assert_eq!(restored.number("SELECT COUNT(*) FROM sessions").await, 0);
        assert_eq!(restored.number("SELECT COUNT(*) FROM sign_in_links").await, 0);
        assert!(restored.number("SELECT COUNT(*) FROM activity").await > 0, "what was done stays known");
    })
    .await;
}

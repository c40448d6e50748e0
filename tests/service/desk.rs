//! The desk: tokens, where they lead, and what they change over HTTP.

mod activity;
mod bucket;
mod documented;
mod inbox;
mod interrupted;
mod letters;
mod pages;
mod people;
mod releases;
mod sign_in;
mod uploads;
mod uploads_by_form;

use std::time::{Duration, Instant};

use porchlight::config::RawSettings;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    Answer, Connection, PUBLIC_ADDRESSES, Program, Service, connect_from, disk_image, in_network_namespace,
    on_each_database, on_each_database_with, on_one_database_with,
};
use crate::ops::ask;

const RELEASES: &str = "/desk/releases/";

/// A site whose desk is open to tokens.
fn open() -> RawSettings {
    RawSettings {
        base_url: Some("https://troupe.example".to_owned()),
        desk: Some("api".to_owned()),
        ops_listen: Some("127.0.0.1:0".to_owned()),
        ..RawSettings::default()
    }
}

/// A desk for browsers on this machine alone.
fn private() -> RawSettings {
    RawSettings { ops_listen: Some("127.0.0.1:0".to_owned()), ..RawSettings::default() }
}

/// Runs a command on the database of the service; returns exit code, standard output and standard error.
fn run(service: &Service, arguments: &[&str]) -> (i32, String, String) {
    let mut command = service.command(arguments);
    let output = Program::run_to_end(command.args(["--database-url", service.database.url()]));
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}

/// What `release list --json` prints.
fn listed(service: &Service) -> Value {
    let output = Program::run_to_end(&mut service.release_command(&["list", "--json"]));
    serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
}

fn token(service: &Service) -> String {
    let (code, token, said) = run(service, &["token", "create", "ci", "--may", "publish"]);
    assert_eq!(code, 0, "{said}");
    token.trim().to_owned()
}

fn tokens(service: &Service) -> Value {
    serde_json::from_str(&run(service, &["token", "list", "--json"]).1).expect("JSON")
}

/// Sends a request with the token to a path below the releases.
async fn send(service: &Service, method: Method, token: &str, path: &str, body: impl Into<Vec<u8>>) -> Answer {
    let bearer = format!("Bearer {token}");
    service.send(method, &format!("{RELEASES}{path}"), &[("authorization", &bearer)], body).await
}

async fn put(service: &Service, token: &str, path: &str, image: &[u8]) -> Answer {
    send(service, Method::PUT, token, path, image).await
}

#[tokio::test]
async fn a_token_is_shown_once_and_only_its_hash_is_kept() {
    on_each_database(async |service| {
        let (code, printed, said) = run(service, &["token", "create", "ci", "--may", "publish"]);
        let token = printed.trim();
        assert_eq!((code, printed.lines().count()), (0, 1), "{said}");
        assert!(token.len() > 50 && said.contains("shown this once"), "{said}");
        let secret = token.strip_prefix("porchlight_").expect("the prefix of every token");
        let stored = format!("{:?}", service.database.everything().await);
        assert!(stored.contains("\"ci\"") || stored.contains("ci"), "{stored}");
        assert!(!stored.contains(secret), "{stored}");

        let listed = tokens(service);
        let created = "2026-11-15T12:00:00Z";
        assert!(listed[0]["created"].as_str().unwrap() >= created, "{listed}");
        let expected = json!([{ "name": "ci", "may": "publish", "created": listed[0]["created"], "last_used": null, "until": null }]);
        assert_eq!(listed, expected);
        let (_, text, _) = run(service, &["token", "list"]);
        assert!(text.contains("never used") && text.trim_end().ends_with("ci"), "{text}");

        for (arguments, code, words) in [
            (&["create", "ci", "--may", "publish"][..], 1, "There is a token ci already"),
            (&["create", "ci 2", "--may", "publish"], 2, "letters, digits"),
            (&["create", "ci2", "--may", "everything"], 2, "may only `publish`"),
            (&["create", "ci2"], 2, "--may"),
            (&["create", "ci2", "--may", "publish", "--until", "2026-11-14"], 1, "2026-11-14 has passed"),
            (&["create", "ci2", "--may", "publish", "--until", "soon"], 2, "2026-11-15"),
            (&["revoke", "cd"], 1, "There is no token cd"),
        ] {
            let (found, _, said) = run(service, &[&["token"], arguments].concat());
            assert_eq!(found, code, "{arguments:?}: {said}");
            assert!(said.contains(words), "{arguments:?}: {said}");
        }
        assert_eq!(tokens(service), expected);
        assert_eq!(run(service, &["token", "revoke", "ci"]).0, 0);
        assert_eq!(tokens(service), json!([]));
    })
    .await;
}

#[tokio::test]
async fn a_token_works_until_it_is_revoked_or_its_last_day_has_passed() {
    on_each_database_with(open(), async |service| {
        let token = token(service);
        send(service, Method::GET, &token, "", "").await.expect_ok();
        let used = tokens(service)[0]["last_used"].clone();
        assert!(used.as_str().unwrap().starts_with("2026-11-15T12:0"), "{used}");
        service.clock.advance(Duration::from_mins(50));
        send(service, Method::GET, &token, "", "").await.expect_ok();
        assert_eq!(tokens(service)[0]["last_used"], used, "it is recorded once an hour");
        service.clock.advance(Duration::from_mins(15));
        send(service, Method::GET, &token, "", "").await.expect_ok();
        assert!(tokens(service)[0]["last_used"].as_str().unwrap() > used.as_str().unwrap());

        assert_eq!(run(service, &["token", "revoke", "ci"]).0, 0);
        send(service, Method::GET, &token, "", "").await.expect_problem(401, "unauthorized");

        let (_, printed, _) = run(service, &["token", "create", "short", "--may", "publish", "--until", "2026-11-16"]);
        assert_eq!(tokens(service)[0]["until"], "2026-11-16");
        send(service, Method::GET, printed.trim(), "", "").await.expect_ok();
        service.clock.advance(Duration::from_hours(24));
        send(service, Method::GET, printed.trim(), "", "").await.expect_ok();
        service.clock.advance(Duration::from_hours(24));
        send(service, Method::GET, printed.trim(), "", "").await.expect_problem(401, "unauthorized");
    })
    .await;
}

#[tokio::test]
async fn without_the_setting_the_desk_is_an_unknown_path_of_the_site_and_only_on_the_ops_listener() {
    let private = RawSettings { desk: None, ..open() };
    on_each_database_with(private, async |service| {
        let (token, unknown) = (token(service), service.get("/nothing").await);
        for path in ["", "1.0.0", "1.0.0/notes"] {
            let answer = send(service, Method::GET, &token, path, "").await;
            assert_eq!((answer.status.as_u16(), answer.text()), (404, unknown.text()), "{path}");
        }
        assert_eq!(put(service, &token, "1.0.0", &disk_image(20_000, 1)).await.status, 404);
        let bearer = format!("Bearer {token}");
        let (status, _, text) = ask(service, RELEASES, &[("authorization", &bearer)]).await;
        assert_eq!((status, text.trim()), (200, "[]"));
        assert_eq!(ask(service, RELEASES, &[]).await.0, 401, "loopback needs a token, too");
        let (_, _, page) = ask(service, "/desk", &[("authorization", &bearer)]).await;
        assert!(page.contains("<h1>Sign in</h1>"), "pages take sessions alone: {page}");
    })
    .await;
}

#[tokio::test]
async fn on_a_guarded_ops_listener_the_desk_takes_its_own_tokens_and_nothing_else_does() {
    let ops_token = "a token that nobody guesses";
    on_one_database_with(RawSettings { ops_token: Some(ops_token.to_owned()), ..open() }, async |service| {
        let bearer = format!("Bearer {}", token(service));
        assert_eq!(ask(service, RELEASES, &[("authorization", &bearer)]).await.0, 200);
        assert_eq!(ask(service, "/metrics", &[("authorization", &bearer)]).await.0, 401);
        let bearer = format!("Bearer {ops_token}");
        assert_eq!(ask(service, RELEASES, &[("authorization", &bearer)]).await.0, 401);
    })
    .await;
}

#[tokio::test]
async fn an_open_desk_has_releases_and_nothing_else() {
    on_one_database_with(open(), async |service| {
        let (token, unknown) = (token(service), service.get("/nothing").await.text());
        let bearer = format!("Bearer {token}");
        for path in ["/desk", "/desk/", "/desk/releases", "/desk/people", "/desk/releases/1.0.0/image", "/metrics"] {
            let answer = service.send(Method::GET, path, &[("authorization", &bearer)], "").await;
            assert_eq!((answer.status.as_u16(), answer.text()), (404, unknown.clone()), "{path}");
        }
        for page in ["/robots.txt", "/sitemap.xml", "/llms.txt", "/"] {
            assert!(!service.get(page).await.text().contains("/desk"), "{page}");
        }
        for (method, path, allow) in [
            (Method::POST, "", "GET, HEAD"),
            (Method::POST, "1.0.0", "DELETE, GET, HEAD, PUT"),
            (Method::GET, "1.0.0/notes", "POST, PUT"),
        ] {
            let answer = send(service, method, &token, path, "").await;
            answer.expect_problem(405, "method_not_allowed");
            assert_eq!(answer.header("allow"), allow);
        }
    })
    .await;
}

#[tokio::test]
async fn a_public_peer_without_https_finds_no_desk() {
    if !in_network_namespace("desk::a_public_peer_without_https_finds_no_desk").await {
        return;
    }
    let written = RawSettings {
        client_ip_header: Some("x-forwarded-for".to_owned()),
        trusted_proxies: Some(PUBLIC_ADDRESSES[1].to_owned()),
        ..open()
    };
    on_one_database_with(written, async |service| {
        let head = format!(
            "GET {RELEASES} HTTP/1.1\r\nHost: troupe.example\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            token(service)
        );
        for (peer, status) in [(PUBLIC_ADDRESSES[0], 404), (PUBLIC_ADDRESSES[1], 200), ("127.0.0.1", 200)] {
            let mut connection = Connection::new(connect_from(peer, service.address()).await);
            connection.send(&head).await;
            let answer = connection.read_to_end().await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{peer}: {answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn wrong_tokens_are_counted_and_answered_late_once_there_were_ten() {
    on_one_database_with(open(), async |service| {
        let token = token(service);
        let missing = service.get(RELEASES).await;
        missing.expect_problem(401, "unauthorized");
        assert!(missing.header("www-authenticate").starts_with("Bearer"));
        let in_query = service.get(&format!("{RELEASES}?token={token}&access_token={token}")).await;
        in_query.expect_problem(401, "unauthorized");
        let basic = service.send(Method::GET, RELEASES, &[("authorization", &format!("Basic {token}"))], "").await;
        basic.expect_problem(401, "unauthorized");

        let wrong = format!("porchlight_{}", "0".repeat(64));
        for tried in ["x", &wrong].into_iter().cycle().take(10) {
            let answer = send(service, Method::GET, tried, "", "").await;
            answer.expect_problem(401, "unauthorized");
            assert_eq!(answer.header("connection"), "close");
        }
        let start = Instant::now();
        send(service, Method::GET, &wrong, "", "").await.expect_problem(401, "unauthorized");
        assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
        send(service, Method::GET, &token, "", "").await.expect_ok();
        let (_, _, metrics) = ask(service, "/metrics", &[]).await;
        assert!(metrics.contains("porchlight_refused_total{reason=\"wrong_tokens\"} 11\n"), "{metrics}");
        assert!(!metrics.contains("porchlight_0") && !metrics.contains(&token));
    })
    .await;
}

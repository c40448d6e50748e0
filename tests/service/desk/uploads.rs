//! Which disk images are published over HTTP, and what else a token changes.

use reqwest::Method;
use serde_json::Value;

use super::{RELEASES, listed, open, put, run, send, token};
use crate::harness::{Connection, Service, disk_image, on_each_database_with, on_one_database_with};

const LATEST: &str = "/releases/latest/Troupe.dmg";
/// With every character that base64 has besides letters and digits.
const SIGNATURE: &str = "aB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaB3+/xaA==";

/// What is published, and how many files there are.
fn state(service: &Service) -> (Value, usize) {
    (listed(service), std::fs::read_dir(service.releases_dir()).map_or(0, Iterator::count))
}

#[tokio::test]
async fn one_request_publishes_a_disk_image_and_it_is_the_newest_at_once() {
    on_each_database_with(open(), async |service| {
        let (token, image) = (token(service), disk_image(300_000, 7));
        let path = format!("1.1.0?build=110&ed_signature={SIGNATURE}&minimum_macos=14.0");
        let answer = put(service, &token, &path, &image).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        assert_eq!((answer.header("content-type"), answer.header("cache-control")), ("application/json", "no-store"));
        assert_eq!(service.head(LATEST).await.header("location"), "/releases/Troupe-1.1.0.dmg");
        assert!(service.get("/releases/Troupe-1.1.0.dmg").await.body == image);
        let release = answer.json();
        assert_eq!(release, listed(service)[0]);
        for (name, value) in [("build", "110"), ("ed_signature", SIGNATURE), ("minimum_macos", "14.0")] {
            assert_eq!(release[name], value);
        }
        assert_eq!(release["length"], 300_000);
        assert!(!service.releases_dir().join(".partial").exists());
        service.wait_for_text("/index.md", "1.1.0").await;

        let encoded = SIGNATURE.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let beta =
            put(service, &token, &format!("2.0.0-beta.1?channel=beta&build=200&ed_signature={encoded}"), &image).await;
        assert_eq!(beta.status, 201, "{}", beta.text());
        assert_eq!(beta.json()["ed_signature"], SIGNATURE);
        assert_eq!(beta.json()["same_image_as"], "1.1.0", "a program may ask whether it was the right file");
        assert_eq!(service.head(LATEST).await.header("location"), "/releases/Troupe-1.1.0.dmg");
        assert_eq!(send(service, Method::GET, &token, "", "").await.expect_ok(), listed(service));
        assert_eq!(send(service, Method::GET, &token, "1.1.0", "").await.expect_ok(), listed(service)[1]);
    })
    .await;
}

#[tokio::test]
async fn the_same_image_again_is_a_success_and_another_one_under_its_version_is_refused() {
    on_each_database_with(open(), async |service| {
        let (token, image) = (token(service), disk_image(300_000, 7));
        assert_eq!(put(service, &token, "1.1.0?build=110", &image).await.status, 201);
        let before = state(service);
        let again = put(service, &token, "1.1.0?build=110", &image).await.expect_ok();
        assert_eq!(again, before.0[0]);
        for other in [disk_image(300_000, 8), disk_image(300_001, 7)] {
            let problem = put(service, &token, "1.1.0?build=110", &other).await.expect_problem(409, "version_used");
            assert!(problem["detail"].as_str().unwrap().contains("1.1.0 is already published"), "{problem:#}");
        }
        assert_eq!(state(service), before);
        assert_eq!(send(service, Method::DELETE, &token, "1.1.0", "").await.status, 200);
        put(service, &token, "1.1.0", &image).await.expect_problem(409, "version_withdrawn");
        assert_eq!(service.get("/releases/Troupe-1.1.0.dmg").await.status, 410);
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_published_is_refused_by_its_reason_and_changes_nothing() {
    on_each_database_with(open(), async |service| {
        let (token, image) = (token(service), disk_image(20_000, 7));
        let signature = format!("{}%3D%3D", "a".repeat(86));
        assert_eq!(
            put(service, &token, &format!("1.4.0?build=100&ed_signature={signature}"), &image).await.status,
            201
        );
        let [lower, unsigned] = [format!("1.5.0?build=99&ed_signature={signature}"), "1.5.0?build=101".to_owned()];
        let higher = format!("1.5.0?build=101&ed_signature={signature}");
        let no_build = format!("1.5.0?ed_signature={signature}");
        let before = state(service);
        let cut = &image[..19_000];
        for (path, body, status, code, words) in [
            (higher.as_str(), cut, 422, "not_an_image", "or copy it again"),
            (higher.as_str(), b"x", 422, "not_an_image", "it is not a disk image"),
            (lower.as_str(), &image, 409, "build_order", "choose a higher one"),
            (unsigned.as_str(), &image, 409, "signature_missing", "sign_update"),
            (no_build.as_str(), &image, 409, "build_missing", "give that of the app"),
            ("1.3.9", &image, 409, "not_newer", "1.3.9 is not newer than 1.4.0"),
            ("1.5.0-beta.1", &image, 409, "channel_missing", "cannot be in the stable channel"),
            ("1.5.x", &image, 400, "invalid_parameter", "`version` cannot be used"),
            ("latest", &image, 400, "invalid_parameter", "`version` cannot be used"),
            ("1.5.0?build=", &image, 400, "invalid_parameter", "`build` cannot be used"),
            ("1.5.0?ed_signature=abc", &image, 400, "invalid_parameter", "sign_update"),
            ("1.5.0?minimum_macos=Sonoma", &image, 400, "invalid_parameter", "`minimum_macos` cannot be used"),
            ("1.5.0?channel=a%20b", &image, 400, "invalid_parameter", "`channel` cannot be used"),
            ("1.5.0?force=true", &image, 400, "invalid_parameter", "no parameter `force`"),
            ("1.5.0?build=1&bild=2", &image, 400, "invalid_parameter", "no parameter `bild`"),
            ("1.5.0?build=1&build=1", &image, 400, "invalid_parameter", "`build` is there twice"),
        ] {
            let problem = put(service, &token, path, body).await.expect_problem(status, code);
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(words), "{path}: {detail}");
            assert!(!detail.contains("--") && !detail.contains(service.releases_dir().to_str().unwrap()), "{detail}");
            assert_eq!(state(service), before, "{path}");
        }
        for path in ["1.4.0?x=1", "?x=1"] {
            send(service, Method::GET, &token, path, "").await.expect_problem(400, "invalid_parameter");
        }
        assert_eq!(service.head(LATEST).await.header("location"), "/releases/Troupe-1.4.0.dmg");
    })
    .await;
}

/// The head of an upload, whose client waits for `100 Continue`.
fn head(token: &str, path: &str, more: &str) -> String {
    format!(
        "PUT {RELEASES}{path} HTTP/1.1\r\nHost: troupe.example\r\nAuthorization: Bearer {token}\r\n\
         Expect: 100-continue\r\n{more}\r\n"
    )
}

#[tokio::test]
async fn what_is_wrong_without_the_body_is_refused_before_it_is_sent() {
    on_one_database_with(open(), async |service| {
        let (token, image) = (token(service), disk_image(20_000, 7));
        assert_eq!(put(service, &token, "1.4.0", &image).await.status, 201);
        let length = "Content-Length: 20000\r\n";
        for (token, path, more, status, code) in [
            ("wrong", "1.5.0", length, 401, "unauthorized"),
            (&token, "1.5.x", length, 400, "invalid_parameter"),
            (&token, "1.3.0", length, 409, "not_newer"),
            (&token, "1.4.0", "Content-Length: 20001\r\n", 409, "version_used"),
            (&token, "1.5.0?ed_signature=x", length, 400, "invalid_parameter"),
            (&token, "1.5.0", "Transfer-Encoding: chunked\r\n", 411, "length_required"),
            (&token, "1.5.0", "Content-Length: 9000000000000000\r\n", 507, "no_room"),
        ] {
            let mut connection = Connection::open(service.address()).await;
            connection.send(head(token, path, more)).await;
            let answer = connection.read_until("\r\n\r\n").await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
            let body = connection.read_until("\n}").await;
            assert!(body.contains(&format!("\"code\": \"{code}\"")), "{path}: {body}");
        }
        let mut connection = Connection::open(service.address()).await;
        connection.send(head(&token, "1.5.0", "Content-Length: 20000\r\nConnection: close\r\n")).await;
        assert_eq!(connection.read_until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
        connection.send(&image).await;
        assert!(connection.read_to_end().await.starts_with("HTTP/1.1 201 "));
    })
    .await;
}

#[tokio::test]
async fn a_token_that_is_revoked_while_an_image_arrives_publishes_nothing() {
    on_each_database_with(open(), async |service| {
        let (token, image) = (token(service), disk_image(20_000, 7));
        let mut connection = Connection::open(service.address()).await;
        connection.send(head(&token, "1.5.0", "Content-Length: 20000\r\nConnection: close\r\n")).await;
        assert_eq!(connection.read_until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
        connection.send(&image[..10_000]).await;
        let names = run(service, &["token", "list", "--json"]).1;
        let names: Value = serde_json::from_str(&names).expect("JSON");
        let name = names[0]["name"].as_str().expect("a name").to_owned();
        assert_eq!(run(service, &["token", "revoke", &name]).0, 0);
        connection.send(&image[10_000..]).await;
        let answer = connection.read_to_end().await;
        assert!(
            answer.starts_with("HTTP/1.1 401 ") && answer.contains("was ended while the image arrived"),
            "{answer}"
        );
        assert_eq!(listed(service).as_array().map(Vec::len), Some(0));
    })
    .await;
}

#[tokio::test]
async fn notes_are_set_and_a_release_is_withdrawn_by_a_request_each() {
    on_each_database_with(open(), async |service| {
        let (token, image) = (token(service), disk_image(20_000, 7));
        put(service, &token, "1.1.0", &image).await;
        for (method, notes) in [(Method::POST, "# Faster\n"), (Method::PUT, "# Even faster\n")] {
            let answer = send(service, method, &token, "1.1.0/notes", notes).await.expect_ok();
            assert_eq!(answer["notes"], notes.trim_end());
            service.wait_for_text("/releases", notes[2..].trim_end()).await;
        }
        let before = listed(service);
        let too_long = "x".repeat(65 * 1024);
        for (path, notes, status, code) in [
            ("1.1.0/notes", too_long.as_bytes(), 422, "invalid_notes"),
            ("1.1.0/notes", b"\xff", 422, "invalid_notes"),
            ("1.2.0/notes", b"x", 404, "not_found"),
            ("1.x/notes", b"x", 400, "invalid_parameter"),
            ("1.1.0/notes?x=1", b"x", 400, "invalid_parameter"),
        ] {
            send(service, Method::POST, &token, path, notes).await.expect_problem(status, code);
        }
        assert_eq!(listed(service), before);

        send(service, Method::DELETE, &token, "1.2.0", "").await.expect_problem(404, "not_found");
        let path = "1.1.0?reason=It%20loses%20settings";
        let withdrawn = send(service, Method::DELETE, &token, path, "").await.expect_ok();
        assert!(withdrawn["withdrawn"].is_string(), "{withdrawn:#}");
        assert_eq!(withdrawn["withdrawn_reason"], "It loses settings");
        assert_eq!(service.head(LATEST).await.status, 503, "at once");
        assert_eq!(send(service, Method::DELETE, &token, "1.1.0", "").await.expect_ok(), withdrawn);
    })
    .await;
}

#[tokio::test]
async fn check_says_whether_the_desk_is_open_and_has_tokens() {
    on_one_database_with(open(), async |service| {
        let check = || run(service, &["check", "--json", "--base-url", "https://troupe.example", "--desk", "api"]).1;
        let desk = |report: &str| {
            let report: Value = serde_json::from_str(report).expect("JSON");
            report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "desk").cloned()
        };
        let found = desk(&check()).expect("a line about the desk");
        assert!(found["detail"].as_str().unwrap().contains("but there are none"), "{found:#}");
        token(service);
        let found = desk(&check()).expect("a line about the desk");
        assert_eq!(found["detail"], "https://troupe.example/desk/releases/ is open to tokens: 1 token");
        assert_eq!(desk(&run(service, &["check", "--json"]).1), None);
    })
    .await;
}

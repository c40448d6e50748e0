//! The ops listener: health, the dashboard, metrics, and none of it on the public listener.

mod dashboard;
mod metrics;

use std::net::IpAddr;

use porchlight::config::RawSettings;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::harness::{Connection, PUBLIC_ADDRESSES, Service, connect_from, in_network_namespace, wait_until};

pub(super) fn watched() -> RawSettings {
    RawSettings { ops_listen: Some("127.0.0.1:0".to_owned()), ..RawSettings::default() }
}

/// Sends a request to the ops listener.
pub(super) async fn ask(service: &Service, path: &str, headers: &[(&str, &str)]) -> (u16, HeaderMap, String) {
    let mut request = reqwest::Client::new().get(format!("http://{}{path}", service.ops_address()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.expect("an answer");
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    (status, headers, answer.text().await.expect("a text"))
}

pub(super) async fn readiness(service: &Service) -> (u16, Value) {
    let (status, _, text) = ask(service, "/readyz", &[]).await;
    (status, serde_json::from_str(&text).expect("JSON"))
}

const PATHS: [&str; 6] = ["/", "/dashboard.css", "/serif.woff2", "/healthz", "/readyz", "/metrics"];

#[tokio::test]
async fn nothing_of_it_answers_on_the_public_port() {
    crate::harness::on_one_database_with(watched(), async |service| {
        for path in PATHS {
            assert_eq!(ask(service, path, &[]).await.0, 200, "{path}");
            let public = service.get(path).await;
            assert!(public.status == 404 || (path == "/" && !public.text().contains("<h1>Overview</h1>")), "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn with_a_foreign_host_or_without_the_token_nothing_is_revealed() {
    let token = "a token that nobody guesses";
    let guarded = RawSettings { ops_token: Some(token.to_owned()), ..watched() };
    for (written, wrong, status) in [(watched(), ("host", "evil.example"), 421), (guarded, ("x-token", token), 401)] {
        crate::harness::on_one_database_with(written, async |service| {
            for path in PATHS {
                let (refused, headers, text) = ask(service, path, &[wrong]).await;
                assert_eq!(refused, status, "{path}");
                assert!(!text.contains("porchlight_") && !text.contains("<svg"), "{text}");
                assert_eq!(headers["cache-control"], "no-store");
                let bearer = format!("Bearer {token}");
                assert_eq!(ask(service, path, &[("authorization", &bearer)]).await.0, 200, "{path}");
            }
        })
        .await;
    }
}

#[tokio::test]
async fn readiness_reports_writer_and_outbox_and_late_mail_is_no_failure() {
    let server = crate::harness::MailServer::start().await;
    let written = RawSettings {
        smtp_url: Some(server.url()),
        mail_from: Some("hello@troupe.example".to_owned()),
        contact_to: Some("makers@troupe.example".to_owned()),
        ..watched()
    };
    drop(server);
    crate::harness::on_each_database_with(written, async |service| {
        let (status, report) = readiness(service).await;
        assert_eq!((status, &report["parts"]["writer"], &report["parts"]["outbox"]), (200, &"ok".into(), &"ok".into()));
        let letter = serde_json::json!({ "email": "ada@example.com", "message": "Hello" });
        service.post("/api/contact", &letter).await.expect_ok();
        service.clock.advance(std::time::Duration::from_mins(61));
        let (status, report) = readiness(service).await;
        let outbox = report["parts"]["outbox"].as_str().expect("words");
        assert!(outbox.contains("61 minutes"), "{report:#}");
        assert_eq!((status, &report["ready"]), (200, &true.into()));
    })
    .await;
}

#[tokio::test]
async fn readiness_follows_whether_writes_succeed() {
    crate::harness::on_each_database_with(watched(), async |service| {
        let lock = service.database.lock().await;
        let join = serde_json::json!({ "email": "ada@example.com" });
        service.post("/api/waitlist", &join).await.expect_problem(503, "unavailable");
        let (status, report) = readiness(service).await;
        let writer = report["parts"]["writer"].as_str().expect("words");
        assert!(writer.starts_with("writes fail"), "{report:#}");
        assert_eq!((status, &report["ready"]), (503, &false.into()));
        lock.release().await;
        becomes_ready(service).await;
    })
    .await;
}

/// There are no writes meanwhile, as behind a load balancer that routes nothing here.
pub(super) async fn becomes_ready(service: &Service) {
    wait_until("readiness", async || readiness(service).await.0 == 200).await;
}

#[tokio::test]
async fn where_nothing_is_published_yet_pages_and_the_list_are_served_all_the_same() {
    let written = RawSettings { base_url: Some("https://troupe.example".to_owned()), ..watched() };
    crate::harness::on_each_database_with(written, async |service| {
        let (_, headers, _) = ask(service, "/", &[]).await;
        assert!(!headers.contains_key("strict-transport-security"), "a plain listener: {headers:?}");
        let (status, report) = readiness(service).await;
        assert_eq!((status, &report["parts"]["newest_image"]), (200, &"nothing has been published".into()));
    })
    .await;
}

#[tokio::test]
async fn without_the_database_nothing_is_claimed_that_only_it_knows() {
    let service = Service::start(watched(), crate::harness::Database::migrated_postgres().await).await;
    service.database.refuse_connections().await;
    let (status, report) = readiness(&service).await;
    let parts: Vec<_> = report["parts"].as_object().expect("parts").keys().collect();
    assert_eq!(status, 503);
    assert_eq!(parts, ["database"]);
    service.database.accept_connections().await;
    becomes_ready(&service).await;
    service.stop().await;
}

/// A stranger who reaches the ops listener takes as many connections as they can, and guesses.
#[tokio::test]
async fn a_stranger_cannot_lock_the_makers_out() {
    if !in_network_namespace("ops::a_stranger_cannot_lock_the_makers_out").await {
        return;
    }
    let token = "a token that nobody guesses";
    let reachable = RawSettings {
        ops_listen: Some("0.0.0.0:0".to_owned()),
        ops_token: Some(token.to_owned()),
        ..RawSettings::default()
    };
    let [stranger, maker] = PUBLIC_ADDRESSES;
    crate::harness::on_one_database_with(reachable, async |service| {
        let address = (stranger.parse::<IpAddr>().expect("an address"), service.ops_address().port()).into();
        let open = async |from: &str| Connection::new(connect_from(from, address).await);
        let request = |credential: &str, more: &str| {
            format!("GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {credential}\r\n{more}\r\n")
        };
        let mut idle = Vec::new();
        for _ in 0..16 {
            idle.push(open(stranger).await);
        }
        for _ in 0..100 {
            assert_eq!(open(stranger).await.read_to_end().await, "", "one too many is closed");
        }
        for _ in 0..11 {
            let mut connection = open(maker).await;
            connection.send(request("a guess", "")).await;
            let answer = connection.read_to_end().await;
            assert!(answer.starts_with("HTTP/1.1 401"), "the connection is closed after a wrong token: {answer}");
        }
        let mut connection = open(maker).await;
        connection.send(request(token, "Connection: close\r\n")).await;
        assert!(connection.read_to_end().await.starts_with("HTTP/1.1 200"));
        let mut connection = open(maker).await;
        let metrics = request(token, "Connection: close\r\n").replace("/healthz", "/metrics");
        connection.send(metrics).await;
        let metrics = connection.read_to_end().await;
        assert!(metrics.contains("porchlight_refused_total{reason=\"ops_connections\"} 100"), "{metrics}");
    })
    .await;
}

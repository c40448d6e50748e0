//! A proxy that no setting names, in a network where it has a public address.

use porchlight::config::RawSettings;
use serde_json::Value;

use super::proxied;
use crate::harness::{Connection, PUBLIC_ADDRESSES, Program, Service, connect_from, in_network_namespace};
use crate::harness::{on_one_database_with, wait_until};
use crate::ops::{ask, readiness, watched};

/// Sends a request from a public address; returns the status line and the rest.
async fn request(service: &Service, method: &str, path: &str, header: &str) -> String {
    let mut connection = Connection::new(connect_from(PUBLIC_ADDRESSES[0], service.address()).await);
    let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{length}{header}Connection: close\r\n\r\n");
    connection.send(head).await;
    connection.read_to_end().await
}

/// What `check` says about proxies.
fn check(service: &Service) -> Option<Value> {
    let mut command = service.command(&["check", "--json", "--database-url", service.database.url()]);
    let report: Value = serde_json::from_slice(&Program::run_to_end(&mut command).stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks").clone();
    checks.into_iter().find(|check| check["name"] == "proxy")
}

const FORWARDED: [&str; 5] = [
    "X-Forwarded-For: 198.51.100.1\r\n",
    "Forwarded: for=198.51.100.1\r\n",
    "CF-Connecting-IP: 198.51.100.1\r\n",
    "X-Real-IP: 198.51.100.1\r\n",
    "True-Client-IP: 198.51.100.1\r\n",
];

#[tokio::test]
async fn a_proxy_that_no_setting_names_is_noticed() {
    if !in_network_namespace("clients::proxies::a_proxy_that_no_setting_names_is_noticed").await {
        return;
    }
    for header in FORWARDED {
        on_one_database_with(watched(), async |service| {
            assert!(request(service, "GET", "/robots.txt", "").await.starts_with("HTTP/1.1 200"));
            assert_eq!(readiness(service).await.1["parts"]["proxy"], "ok");
            assert!(ask(service, "/metrics", &[]).await.2.contains("porchlight_unconfigured_proxy 0"));
            assert_eq!(check(service), None);

            request(service, "GET", "/robots.txt", header).await;
            let (status, parts) = readiness(service).await;
            let problem = parts["parts"]["proxy"].as_str().expect("a sentence").to_owned();
            assert_eq!(status, 200, "it is a note");
            let (_, _, page) = ask(service, "/", &[]).await;
            for text in [&problem, &page] {
                assert!(text.contains("client_ip_header") && text.contains("trusted_proxies"), "{text}");
                assert!(!text.contains("198.51.100.1"), "{text}");
            }
            assert!(ask(service, "/metrics", &[]).await.2.contains("porchlight_unconfigured_proxy 1"));
            wait_until("the note in the database", async || service.database.count("notices").await == 1).await;
            let note = check(service).expect("a note");
            assert_eq!(note["state"], "note");
            assert!(note["detail"].as_str().expect("a text").contains("2026-11-15"), "{note}");
        })
        .await;
    }
}

#[tokio::test]
async fn nothing_is_noticed_where_the_header_is_expected_or_does_not_matter() {
    if !in_network_namespace("clients::proxies::nothing_is_noticed_where_the_header_is_expected_or_does_not_matter")
        .await
    {
        return;
    }
    let off = RawSettings { client_limits: Some("off".to_owned()), ..watched() };
    for settings in [proxied(), off] {
        on_one_database_with(settings, async |service| {
            request(service, "GET", "/robots.txt", FORWARDED[0]).await;
            assert_eq!(readiness(service).await.1["parts"]["proxy"], "ok");
        })
        .await;
    }
    // Nor where a local peer sends it.
    on_one_database_with(watched(), async |service| {
        service.send(reqwest::Method::GET, "/", &[("x-forwarded-for", "198.51.100.1")], "").await;
        assert_eq!(readiness(service).await.1["parts"]["proxy"], "ok");
    })
    .await;
}

#[tokio::test]
async fn the_log_says_once_that_there_is_a_proxy_and_nothing_of_its_requests() {
    const NAME: &str = "clients::proxies::the_log_says_once_that_there_is_a_proxy_and_nothing_of_its_requests";
    if !in_network_namespace(NAME).await {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let command = Program::command(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
    let program = Program::start(command, "not mailed to anybody");
    for header in FORWARDED {
        let mut connection = Connection::new(connect_from(PUBLIC_ADDRESSES[0], program.address()).await);
        connection.send(format!("GET / HTTP/1.1\r\nHost: x\r\n{header}Connection: close\r\n\r\n")).await;
        connection.read_to_end().await;
    }
    program.signal(rustix::process::Signal::TERM);
    let (_, log) = program.end();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("trusted_proxies")).collect();
    assert!(lines.len() == 1 && lines[0].contains("client_ip_header"), "{log}");
    assert!(!log.contains("198.51.100.1") && !log.contains(PUBLIC_ADDRESSES[0]), "{log}");
}

#[tokio::test]
async fn the_note_is_stored_on_either_database_and_forgotten_after_a_week() {
    for database in crate::harness::each_migrated_database().await {
        let service = Service::start(RawSettings::default(), database).await;
        let at = |days: i64| {
            format!(
                "INSERT INTO notices (name, at) VALUES ('unconfigured_proxy', {}) \
            ON CONFLICT (name) DO UPDATE SET at = excluded.at",
                service.clock.now().unix_millis() - days * 86_400_000
            )
        };
        for (days, is_shown) in [(6, true), (8, false)] {
            service.database.execute(&at(days)).await;
            assert_eq!(check(&service).is_some(), is_shown, "{days} days");
        }
        service.stop().await;
    }
}

#[tokio::test]
async fn a_public_peer_is_limited_and_its_header_is_not_believed() {
    if !in_network_namespace("clients::proxies::a_public_peer_is_limited_and_its_header_is_not_believed").await {
        return;
    }
    on_one_database_with(proxied(), async |service| {
        for number in 0..12 {
            let header = format!("X-Forwarded-For: 198.51.100.{number}\r\n");
            assert!(request(service, "POST", "/api/contact", &header).await.starts_with("HTTP/1.1 400"));
        }
        assert!(request(service, "POST", "/api/contact", FORWARDED[0]).await.starts_with("HTTP/1.1 503"));
    })
    .await;
    // The same from a trusted proxy with a public address.
    let trusted = RawSettings { trusted_proxies: Some("203.0.113.0/24".to_owned()), ..proxied() };
    on_one_database_with(trusted, async |service| {
        for number in 0..20 {
            let header = format!("X-Forwarded-For: 198.51.100.{number}\r\n");
            assert!(request(service, "POST", "/api/contact", &header).await.starts_with("HTTP/1.1 400"));
        }
    })
    .await;
}

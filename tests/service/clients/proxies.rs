//! A proxy that no setting names, in a network where it has a public address.

use porchlight::config::RawSettings;

use super::proxied;
use crate::harness::on_one_database_with;
use crate::harness::{Connection, PUBLIC_ADDRESSES, Program, Service, connect_from, in_network_namespace};

/// Sends a request from a public address; returns the status line and the rest.
async fn request(service: &Service, method: &str, path: &str, header: &str) -> String {
    let mut connection = Connection::new(connect_from(PUBLIC_ADDRESSES[0], service.address()).await);
    let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{length}{header}Connection: close\r\n\r\n");
    connection.send(head).await;
    connection.read_to_end().await
}

const FORWARDED: [&str; 5] = [
    "X-Forwarded-For: 198.51.100.1\r\n",
    "Forwarded: for=198.51.100.1\r\n",
    "CF-Connecting-IP: 198.51.100.1\r\n",
    "X-Real-IP: 198.51.100.1\r\n",
    "True-Client-IP: 198.51.100.1\r\n",
];

/// What the log of a service with these flags says of a proxy, after requests with each of the headers from this address.
async fn proxy_lines(flags: &[&str], source: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"];
    let program =
        Program::start(Program::command(folder.path(), &[&arguments, flags].concat()), "not mailed to anybody");
    for header in FORWARDED {
        let mut connection = Connection::new(connect_from(source, program.address()).await);
        connection.send(format!("GET / HTTP/1.1\r\nHost: x\r\n{header}Connection: close\r\n\r\n")).await;
        connection.read_to_end().await;
    }
    program.signal(rustix::process::Signal::TERM);
    let (_, log) = program.end();
    assert!(!log.contains("198.51.100.1") && !log.contains(source), "{log}");
    log.lines().filter(|line| line.contains("trusted_proxies")).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_log_says_once_that_there_is_a_proxy_and_nothing_of_its_requests() {
    const NAME: &str = "clients::proxies::the_log_says_once_that_there_is_a_proxy_and_nothing_of_its_requests";
    if !in_network_namespace(NAME).await {
        return;
    }
    let lines = proxy_lines(&[], PUBLIC_ADDRESSES[0]).await;
    assert!(lines.len() == 1 && lines[0].contains("client_ip_header"), "{lines:?}");
}

#[tokio::test]
async fn the_log_says_nothing_where_the_header_is_expected_or_does_not_matter() {
    const NAME: &str = "clients::proxies::the_log_says_nothing_where_the_header_is_expected_or_does_not_matter";
    if !in_network_namespace(NAME).await {
        return;
    }
    let proxied = ["--client-ip-header", "x-forwarded-for", "--trusted-proxies", "127.0.0.1"];
    for flags in [&proxied[..], &["--client-limits", "off"]] {
        assert_eq!(proxy_lines(flags, PUBLIC_ADDRESSES[0]).await, [""; 0], "{flags:?}");
    }
    // Nor where a local peer sends it.
    assert_eq!(proxy_lines(&[], "127.0.0.9").await, [""; 0]);
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

//! https by the service itself: HTTP/2 and HTTP/1.1 with an own certificate, redirects, and what stops the start.

mod acme;
mod attacks;
mod silence;
mod sockets;
mod wire;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use porchlight::config::RawSettings;
use serde_json::{Value, json};

use crate::harness::{
    Authority, Identity, Program, Service, each_database, on_each_database_with, on_one_database_with, wait_until,
};
use crate::ops::{ask, watched};

const HOST: &str = "troupe.example";
const FURTHER: &str = "www.troupe.example";

fn https(identity: &Identity) -> RawSettings {
    RawSettings {
        base_url: Some(format!("https://{HOST}")),
        tls_cert: Some(identity.certificate().display().to_string()),
        tls_key: Some(identity.key().display().to_string()),
        redirect_listen: Some("127.0.0.1:0".to_owned()),
        also_hosts: Some(FURTHER.to_owned()),
        ..RawSettings::default()
    }
}

fn identity(authority: &Authority) -> Identity {
    authority.issue_to(&[HOST, FURTHER])
}

/// Runs curl, which finds every host at this port and trusts the authority. Returns its exit code and standard output.
fn curl(port: u16, authority: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new("curl");
    command.args(["--silent", "--max-time", "20", "--connect-to", &format!("::127.0.0.1:{port}"), "--cacert"]);
    command.arg(authority).args(arguments);
    let output = Program::run_to_end(&mut command);
    (output.status.code().expect("an exit code"), String::from_utf8(output.stdout).expect("UTF-8"))
}

#[tokio::test]
async fn pages_and_downloads_come_over_http2_and_http1() {
    let authority = Authority::new();
    let identity = identity(&authority);
    on_each_database_with(https(&identity), async |service| {
        service.publish("1.4.0");
        let port = service.address().port();
        for (version, flag) in [("2", "--http2"), ("1.1", "--http1.1"), ("2", "--tls-max=1.2")] {
            let flags = flag.split('=').collect::<Vec<_>>();
            let page = [&flags[..], &["-i", "-w", "%{http_version}", "https://troupe.example/about"]].concat();
            let (code, answer) = curl(port, &authority.path(), &page);
            assert_eq!(code, 0, "{answer}");
            assert!(answer.ends_with(&format!("</html>\n{version}")), "{flag}: {answer}");
            assert!(answer.to_lowercase().contains("strict-transport-security: max-age=63072000\r\n"), "{answer}");
            let body = json!({ "email": format!("ada{version}@example.com") }).to_string();
            let order = ["-H", "content-type: application/json", "-d", &body, "https://troupe.example/api/download"];
            let (code, answer) = curl(port, &authority.path(), &[&flags[..], &order].concat());
            assert_eq!(code, 0);
            let answer: Value = serde_json::from_str(&answer).expect("JSON");
            assert_eq!(answer["url"], "https://troupe.example/releases/latest/Troupe.dmg");
        }
        assert_eq!(service.database.count("people").await, 2);
    })
    .await;
}

#[tokio::test]
async fn head_gets_the_headers_of_get_and_no_body_over_either_version() {
    let authority = Authority::new();
    let identity = identity(&authority);
    on_one_database_with(https(&identity), async |service| {
        service.publish("1.4.0");
        let port = service.address().port();
        let image = "/releases/Troupe-1.4.0.dmg";
        let shows_release =
            async || curl(port, &authority.path(), &["https://troupe.example/llms.txt"]).1.contains("1.4.0");
        wait_until("the release on the pages", shows_release).await;
        for path in ["/", "/about.md", "/llms.txt", "/openapi.json", "/appcast.xml", image, "/nothing", "/api/download"]
        {
            for version in ["--http2", "--http1.1"] {
                let url = format!("https://troupe.example{path}");
                let [head, get] = ["--head", "--get"].map(|method| {
                    let shown = ["-o", "/dev/null", "-w", "%{http_code} %header{content-length} %header{content-type}"];
                    curl(port, &authority.path(), &[&[method, version, &url][..], &shown].concat())
                });
                assert_eq!(head.0, 0, "{version} {path}");
                assert_eq!(head, get, "{version} {path}");
            }
        }
    })
    .await;
}

/// The client reads nothing before it has sent everything, as many do.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_body_that_is_too_large_is_not_lost() {
    let authority = Authority::new();
    let identity = identity(&authority);
    let body = vec![b' '; 20_000_000];
    let head = format!(
        "POST /api/download HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let send = |mut connection: Box<dyn ReadWrite>| {
        connection.write_all(head.as_bytes()).expect("a head sent");
        connection.write_all(&body).expect("a body sent");
        let answer = String::from_utf8(wire::read_to_end(connection)).expect("UTF-8");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    };
    on_one_database_with(https(&identity), async |service| {
        let address = service.address();
        tokio::task::block_in_place(|| send(Box::new(wire::connect(address, &authority, "http/1.1"))));
    })
    .await;
    on_one_database_with(RawSettings::default(), async |service| {
        let connection = TcpStream::connect(service.address()).expect("a connection");
        tokio::task::block_in_place(|| send(Box::new(connection)));
    })
    .await;
}

trait ReadWrite: Read + Write {}
impl<S: Read + Write> ReadWrite for S {}

#[tokio::test]
async fn a_client_that_asks_for_another_name_is_refused_and_one_that_names_none_is_served() {
    let authority = Authority::new();
    let identity = identity(&authority);
    on_one_database_with(https(&identity), async |service| {
        let port = service.address().port();
        let status = ["-k", "-o", "/dev/null", "-w", "%{http_code}"];
        for (url, expected) in [
            ("https://other.example/", (35, "000")),
            ("https://a.www.troupe.example/", (35, "000")),
            ("https://TROUPE.example/", (0, "200")),
            // curl sends no name for an IP address.
            ("https://127.0.0.1/", (0, "200")),
        ] {
            let (code, answer) = curl(port, &authority.path(), &[&status[..], &[url]].concat());
            assert_eq!((code, answer.as_str()), expected, "{url}");
        }
        let plain = format!("http://127.0.0.1:{port}/");
        assert_ne!(curl(port, &authority.path(), &[&plain]).0, 0, "no plain HTTP on a port of https");
    })
    .await;
}

#[tokio::test]
async fn plain_http_and_further_hosts_redirect_with_path_and_query() {
    let authority = Authority::new();
    let identity = identity(&authority);
    on_one_database_with(https(&identity), async |service| {
        let redirect = service.redirect_address();
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
        for method in [reqwest::Method::GET, reqwest::Method::HEAD] {
            let url = format!("http://{redirect}/about?from=a%20b");
            let answer = client.request(method, url).send().await.expect("an answer");
            assert_eq!(answer.status(), 308);
            assert_eq!(answer.headers()["location"], "https://troupe.example/about?from=a%20b");
            assert!(!answer.headers().contains_key("strict-transport-security"));
        }
        let order = client.post(format!("http://{redirect}/api/download")).body("{}").send().await.expect("an answer");
        assert_eq!((order.status().as_u16(), order.headers().get("location")), (403, None));

        for flag in ["--http2", "--http1.1"] {
            let head = [flag, "-I", "https://www.troupe.example/privacy?x=1"];
            let (_, head) = curl(service.address().port(), &authority.path(), &head);
            assert!(head.contains(" 308"), "{head}");
            assert!(head.to_lowercase().contains("location: https://troupe.example/privacy?x=1\r\n"), "{head}");
        }
    })
    .await;
}

/// Some clients lose a response that arrives before they have sent the body, if the stream is reset after it.
#[tokio::test]
async fn a_body_that_nobody_reads_does_not_cost_the_answer_over_http2() {
    let authority = Authority::new();
    let identity = identity(&authority);
    on_one_database_with(https(&identity), async |service| {
        let body = "x".repeat(60_000);
        for (url, status) in [
            ("https://www.troupe.example/api/download", "308"),
            ("https://troupe.example/nothing", "404"),
            ("https://troupe.example/about", "405"),
        ] {
            for _ in 0..10 {
                let request = ["--http2", "-o", "/dev/null", "-w", "%{http_code}", "-d", &body, url];
                assert_eq!(
                    curl(service.address().port(), &authority.path(), &request),
                    (0, status.to_owned()),
                    "{url}"
                );
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_changed_certificate_is_served_without_a_restart_and_a_bad_one_is_not() {
    let (first, second) = (Authority::new(), Authority::new());
    let served = identity(&first);
    let written = RawSettings { ops_listen: watched().ops_listen, ..https(&served) };
    let [database, _] = each_database().await;
    let service = Service::start(written, database).await;
    let port = service.address().port();
    let trusts = |authority: &Authority| curl(port, &authority.path(), &["https://troupe.example/llms.txt"]).0 == 0;
    assert!(trusts(&first) && !trusts(&second));

    let other = identity(&second);
    std::fs::copy(other.certificate(), served.certificate()).expect("a copy");
    let certificate = async || {
        let (status, _, report) = ask(&service, "/readyz", &[]).await;
        let report: Value = serde_json::from_str(&report).expect("JSON");
        (status, report["parts"]["certificate"].as_str().expect("a part").to_owned())
    };
    wait_until("a problem in /readyz", async || certificate().await.1 != "ok").await;
    let (_, problem) = certificate().await;
    assert!(problem.contains("the key does not belong to the certificate"), "{problem}");
    assert!(trusts(&first), "the pair that fits stays in use");

    std::fs::copy(other.key(), served.key()).expect("a copy");
    wait_until("the new certificate", async || trusts(&second)).await;
    assert_eq!(certificate().await.1, "ok");
    service.stop().await;
}

#[test]
fn an_authority_whose_root_cannot_be_read_stops_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("empty.pem"), "").expect("a file");
    for (file, sentence) in [("nowhere.pem", "nowhere.pem"), ("empty.pem", "has no certificate in PEM format")] {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--redirect-listen", "127.0.0.1:0"];
        let mut command = Program::command(folder.path(), &arguments);
        command.args(["--base-url", "https://troupe.example", "--acme-email", "me@troupe.example"]);
        command.args(["--acme-ca-file", file]);
        let (code, output) = Program::run(command);
        assert_eq!(code, 2, "{output}");
        assert!(output.contains("`acme_ca_file` cannot be used") && output.contains(sentence), "{output}");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_stops_the_start_with_one_sentence_and_exit_code_2() {
    let authority = Authority::new();
    let (good, other) = (identity(&authority), authority.issue_to(&["other.example"]));
    let path = |path: std::path::PathBuf| path.display().to_string();
    for (certificate, key, sentence) in [
        (path(other.certificate()), path(other.key()), "is not for troupe.example"),
        (path(good.certificate()), path(other.key()), "the key does not belong to the certificate"),
        ("/nowhere.pem".to_owned(), path(good.key()), "`tls_cert` cannot be used: /nowhere.pem could not be read"),
        (path(good.key()), path(good.key()), "it has no certificate in PEM format"),
        (path(good.certificate()), path(good.certificate()), "it has no private key in PEM format"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--base-url", "https://troupe.example"];
        let mut command = Program::command(folder.path(), &arguments);
        command.args(["--tls-cert", &certificate, "--tls-key", &key]);
        let (code, output) = Program::run(command);
        assert_eq!(code, 2, "{output}");
        assert!(output.contains(sentence) && output.trim_end().lines().count() == 1, "{output}");
    }
}

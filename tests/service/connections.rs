//! Malformed requests, and unusual but valid use of connections.

mod bounds;

use std::fmt::Write;

use serde_json::json;

use crate::harness::{Connection, Service, on_each_database, on_one_database, on_one_database_with, raw};
use crate::ops::{ask, watched};

/// The status of the first response on a connection.
#[track_caller]
fn status(answer: &str) -> u16 {
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).and_then(|digits| digits.parse().ok());
    status.unwrap_or_else(|| panic!("no answer: {answer:?}"))
}

/// Sends a request with ambiguous framing, and asserts that it gets one response and the connection is closed:
/// nothing after it may be taken for a request.
async fn only_answer(service: &Service, request: &[u8]) -> String {
    let answer = raw(service.address(), request).await;
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    answer
}

const SMUGGLED: &str = "GET /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n";
const JSON: &str = "Content-Type: application/json";

#[tokio::test]
async fn a_request_names_its_host_once() {
    on_one_database(async |service| {
        for (head, expected) in [
            ("GET / HTTP/1.1\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n", 400),
            ("POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\n", 200),
            ("GET / HTTP/1.1\r\nHost:\r\n", 200),
        ] {
            let answer = raw(service.address(), format!("{head}Connection: close\r\n\r\n")).await;
            assert_eq!(status(&answer), expected, "{head}");
        }
        let old = raw(service.address(), "GET / HTTP/1.0\r\n\r\n").await;
        assert!(old.starts_with("HTTP/1.0 200 OK\r\n"), "{old}");
    })
    .await;
}

#[tokio::test]
async fn heads_that_are_not_http_are_400_and_the_connection_is_closed() {
    on_one_database(async |service| {
        for head in [
            "POST /api/waitlist HTTP/1.1\r\nHost : x\r\n",
            "POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Length : 2\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nX-Folded: a\r\n b\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nX-Nul: a\0b\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nX-\0: a\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n",
            "GET /\0 HTTP/1.1\r\nHost: x\r\n",
            "GET / HTTP/9.9\r\nHost: x\r\n",
            "G\u{e9}T / HTTP/1.1\r\nHost: x\r\n",
            "POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n",
            "POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Length: -2\r\n",
            "POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Length: 0x2\r\n",
            "POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n",
            "POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 3\r\n",
            "POST /api/waitlist HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n",
        ] {
            let answer = only_answer(service, format!("{head}\r\n{{}}{SMUGGLED}").as_bytes()).await;
            assert_eq!(status(&answer), 400, "{head:?}");
        }
        let unknown = "POST /api/waitlist HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n{}";
        let answer = only_answer(service, format!("{unknown}{SMUGGLED}").as_bytes()).await;
        assert!([400, 501].contains(&status(&answer)), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn a_length_beside_chunks_never_lets_a_second_request_in() {
    on_each_database(async |service| {
        let body = r#"{"email":"ada@example.com"}"#;
        let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        for lengths in ["Content-Length: 4\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 4"] {
            let request = format!("POST /api/waitlist HTTP/1.1\r\nHost: x\r\n{JSON}\r\n{lengths}\r\n\r\n{chunked}{SMUGGLED}");
            let answer = only_answer(service, request.as_bytes()).await;
            assert!([200, 400].contains(&status(&answer)), "{answer}");
        }
        let length_first = format!(
            "POST /api/waitlist HTTP/1.1\r\nHost: x\r\n{JSON}\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n\
             0\r\n\r\n{}",
            SMUGGLED.len() + 5,
            SMUGGLED
        );
        assert_eq!(status(&only_answer(service, length_first.as_bytes()).await), 400);
    })
    .await;
}

#[tokio::test]
async fn chunks_with_a_bad_size_are_400_and_leave_no_trace() {
    on_each_database(async |service| {
        let body = r#"{"email":"ada@example.com"}"#;
        for size in ["zz", "-1b", "0x1b", "1b 1b", "", "11111111111111111"] {
            for path in ["/api/waitlist", "/mcp"] {
                let request = format!(
                    "POST {path} HTTP/1.1\r\nHost: x\r\n{JSON}\r\nTransfer-Encoding: chunked\r\n\r\n\
                     {size}\r\n{body}\r\n0\r\n\r\n{SMUGGLED}"
                );
                assert_eq!(status(&only_answer(service, request.as_bytes()).await), 400, "{size:?}");
            }
        }
        assert_eq!(service.database.traces().await, 0);
    })
    .await;
}

#[tokio::test]
async fn chunks_that_are_well_formed_are_read() {
    on_each_database(async |service| {
        let request = format!(
            "POST /api/waitlist HTTP/1.1\r\nHost: x\r\n{JSON}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
             A;ext=1\r\n{{\"email\":\"\r\n11\r\nada@example.com\"}}\r\n0\r\nTrailer: x\r\n\r\n"
        );
        let answer = raw(service.address(), request).await;
        assert_eq!(status(&answer), 200, "{answer}");
        assert_eq!(service.database.count("people").await, 1);
    })
    .await;
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused_and_counted() {
    on_one_database_with(watched(), async |service| {
        let many = |count: usize| {
            (1..count).fold("GET / HTTP/1.1\r\nHost: x\r\n".to_owned(), |mut head, number| {
                let _ = write!(head, "X-{number}: y\r\n");
                head
            }) + "\r\n"
        };
        let close = "Connection: close\r\n\r\n";
        let long = |length: usize| format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n{close}", "y".repeat(length));
        assert_eq!(status(&raw(service.address(), long(12 * 1024)).await), 200);
        assert_eq!(status(&raw(service.address(), long(17 * 1024)).await), 431);
        assert_eq!(status(&raw(service.address(), many(101)).await), 431);
        let fitting = many(99).replace("\r\n\r\n", &format!("\r\n{close}"));
        assert_eq!(status(&raw(service.address(), fitting).await), 200);
        let address = format!("GET /{} HTTP/1.1\r\nHost: x\r\n{close}", "a".repeat(17 * 1024));
        let answer = raw(service.address(), address).await;
        assert!([414, 431].contains(&status(&answer)), "{answer}");
        let fitting = format!("GET /?{} HTTP/1.1\r\nHost: x\r\n{close}", "a".repeat(8 * 1024));
        assert_eq!(status(&raw(service.address(), fitting).await), 200);
        let (_, _, metrics) = ask(service, "/metrics", &[]).await;
        let counted = "duration_seconds_count{route=\"*\",status=\"431\"} 3\n";
        assert!(metrics.contains(counted), "{metrics}");
    })
    .await;
}

#[tokio::test]
async fn odd_targets_get_their_answers_and_are_never_reflected() {
    on_one_database(async |service| {
        for (request, expected) in [
            ("TRACE /api/download HTTP/1.1\r\nHost: evil.example\r\nX-Secret: evil.example", 405),
            ("TRACE / HTTP/1.1\r\nHost: evil.example\r\nX-Secret: evil.example", 405),
            ("BREW /api/download HTTP/1.1\r\nHost: x", 405),
            ("GET http://evil.example/ HTTP/1.1\r\nHost: evil.example", 200),
            ("GET http://evil.example/nothing HTTP/1.1\r\nHost: x", 404),
            ("GET http://evil.example/api/nothing HTTP/1.1\r\nHost: x", 404),
            ("GET /api/evil.example HTTP/1.1\r\nHost: x", 404),
            ("OPTIONS * HTTP/1.1\r\nHost: x", 400),
            ("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443", 400),
            ("GET /%00 HTTP/1.1\r\nHost: x", 404),
            ("GET /api/%00 HTTP/1.1\r\nHost: x", 404),
            ("POST /api%2fwaitlist HTTP/1.1\r\nHost: x\r\nContent-Length: 0", 404),
            ("GET /%ff%fe HTTP/1.1\r\nHost: x", 404),
            ("GET /api/download HTTP/1.1\r\nHost: x\r\nX-HTTP-Method-Override: POST", 405),
        ] {
            let answer = raw(service.address(), format!("{request}\r\nConnection: close\r\n\r\n")).await;
            assert_eq!(status(&answer), expected, "{request}");
            let path_is_shown = request.contains("/api/evil.example");
            assert!(path_is_shown || !answer.contains("evil.example"), "{request}: {answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_announced_as_too_long_is_refused_before_it_is_sent() {
    on_one_database(async |service| {
        for path in ["/api/download", "/mcp"] {
            let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\n{JSON}\r\nExpect: 100-continue\r\nContent-Length:");
            let answer = raw(service.address(), format!("{head} 65537\r\n\r\n")).await;
            assert_eq!(status(&answer), 400, "{answer}");
        }
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let mut patient = Connection::open(service.address()).await;
        let head =
            format!("POST /mcp HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\n", body.len());
        patient.send(format!("{head}Connection: close\r\n\r\n")).await;
        assert_eq!(patient.read_until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
        patient.send(body).await;
        assert_eq!(status(&patient.read_to_end().await), 200);
    })
    .await;
}

#[tokio::test]
async fn a_connection_serves_one_request_after_another() {
    on_each_database(async |service| {
        let mut connection = Connection::open(service.address()).await;
        for already in [false, true, true] {
            let body = json!({ "email": "ada@example.com" }).to_string();
            let head =
                format!("POST /api/waitlist HTTP/1.1\r\nHost: x\r\n{JSON}\r\nContent-Length: {}\r\n\r\n", body.len());
            connection.send(format!("{head}{body}")).await;
            assert_eq!(status(&connection.read_until("\r\n\r\n").await), 200);
            connection.read_until(&format!("\"already\":{already}}}")).await;
        }
    })
    .await;
}

#[tokio::test]
async fn requests_sent_at_once_are_answered_in_order() {
    on_one_database(async |service| {
        let get = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n");
        let requests = get("/robots.txt", "")
            + &get("/nothing-here", "")
            + "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
            + &get("/llms.txt", "Connection: close\r\n");
        let answers = raw(service.address(), requests).await;
        let statuses: Vec<_> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
        assert_eq!(statuses, ["200", "404", "400", "200"]);
        let places = ["User-agent: *", "Page not found", "-32600", "# Troupe"].map(|word| answers.find(word));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    })
    .await;
}

#[tokio::test]
async fn incomplete_requests_do_not_disturb_others() {
    on_each_database(async |service| {
        let mut halves = Vec::new();
        for half in [
            "",
            "G",
            "GET / HTTP/1.1\r\nHost: x\r\nX-Half",
            "POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n{\"email\"",
            "POST /mcp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        ] {
            for _ in 0..8 {
                let mut connection = Connection::open(service.address()).await;
                connection.send(half).await;
                halves.push(connection);
            }
        }
        for number in 0..5 {
            let email = format!("person-{number}@example.com");
            service.post("/api/waitlist", &json!({ "email": email })).await.expect_ok();
            assert_eq!(service.get("/").await.status, 200);
        }
        drop(halves);
        service.post("/api/waitlist", &json!({ "email": "last@example.com" })).await.expect_ok();
        assert_eq!(service.database.count("people").await, 6);
    })
    .await;
}

#[tokio::test]
async fn a_response_that_leaves_the_body_unread_announces_the_end_of_the_connection() {
    on_one_database(async |service| {
        for target in ["PUT /api/download", "POST /no-such-page"] {
            let body = "x".repeat(70_000);
            let request = format!("{target} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let response = raw(service.address(), request).await;
            assert!(response.starts_with("HTTP/1.1 40"), "{response}");
            assert!(response.to_lowercase().contains("\r\nconnection: close\r\n"), "{response}");
        }
    })
    .await;
}

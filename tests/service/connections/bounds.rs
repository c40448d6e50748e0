//! Bounds of connections: how long one lives, and how many there are.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use porchlight::domain::limits::MAX_REQUESTS_PER_CONNECTION;
use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Connection, Program, WATCHDOG, on_one_database, raw};

#[tokio::test]
async fn the_last_request_of_a_connection_is_announced_and_answered() {
    on_one_database(async |service| {
        let address = service.address();
        let reading = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).expect("a connection");
            stream.set_read_timeout(Some(WATCHDOG)).expect("a timeout");
            let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines();
            let (mut statuses, mut closes) = (0, Vec::new());
            let mut read_response = || -> Option<()> {
                loop {
                    let line = lines.next()?.ok()?;
                    statuses += u32::from(line == "HTTP/1.1 200 OK");
                    if line == "connection: close" {
                        closes.push(statuses);
                    }
                    if line.is_empty() {
                        return Some(());
                    }
                }
            };
            let request = "HEAD /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n";
            for _ in 0..MAX_REQUESTS_PER_CONNECTION / 100 {
                stream.write_all(request.repeat(100).as_bytes()).expect("to send");
                (0..100).for_each(|_| read_response().expect("a response"));
            }
            let _ = stream.write_all(request.as_bytes());
            assert_eq!(read_response(), None);
            assert_eq!((statuses, closes), (MAX_REQUESTS_PER_CONNECTION, vec![MAX_REQUESTS_PER_CONNECTION]));
        });
        reading.await.expect("the assertions");
    })
    .await;
}

/// After the answer, what still arrives of the body is discarded, but not for the sake of a byte now and then.
#[tokio::test]
async fn a_body_that_drips_does_not_hold_the_connection() {
    on_one_database(async |service| {
        let mut stream = TcpStream::connect(service.address()).expect("a connection");
        let head =
            "POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n";
        stream.write_all(head.as_bytes()).expect("to send");
        let dripping = tokio::task::spawn_blocking(move || {
            (0..25).any(|_| {
                std::thread::sleep(Duration::from_secs(1));
                stream.write_all(b" ").is_err()
            })
        });
        assert!(dripping.await.expect("a client"), "still open after 25 seconds");
    })
    .await;
}

#[tokio::test]
async fn clients_never_take_the_files_that_the_database_needs() {
    let folder = tempfile::tempdir().expect("a folder");
    let serve = Program::command(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 128 && exec \"$@\"", "sh"]).arg(serve.get_program()).args(serve.get_args());
    limited.current_dir(folder.path());
    let program = Program::start(limited, "connections are open at once");
    assert!(program.output().contains("At most 28 connections"), "{}", program.output());

    let mut first = Connection::open(program.address()).await;
    let mut others = Vec::new();
    for _ in 0..60 {
        others.push(Connection::open(program.address()).await);
    }
    let body = json!({ "email": "ada@example.com" }).to_string();
    let head = format!("Host: x\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
    first.send(format!("POST /api/waitlist HTTP/1.1\r\n{head}\r\n\r\n{body}")).await;
    first.read_until("\"already\":false}").await;
    drop(others);
    let page = raw(program.address(), "GET /robots.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    program.signal(Signal::TERM);
    let (status, output) = program.end();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(!output.contains("failed to accept"), "{output}");
}

#[tokio::test]
async fn the_soft_limit_on_open_files_is_raised() {
    let folder = tempfile::tempdir().expect("a folder");
    let serve = Program::command(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "off"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -S -n 128 && exec \"$@\"", "sh"]).arg(serve.get_program()).args(serve.get_args());
    limited.current_dir(folder.path());
    let program = Program::start(limited, "Porchlight is serving");
    let _connection = Connection::open(program.address()).await;
    program.signal(Signal::TERM);
    let (_, output) = program.end();
    assert!(!output.contains("At most 28 connections"), "{output}");
}

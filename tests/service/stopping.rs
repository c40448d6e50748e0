//! The end of the process: within ten seconds whatever others do, and never silently.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Connection, Database, Program, address_in, raw, wait_until};

/// Part of the last line that `serve` logs at the start without a mail server.
const STARTED: &str = "not mailed to anybody";
/// What the contract allows.
const TEN_SECONDS: Duration = Duration::from_secs(10);

fn serve(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Program::command(folder, &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"]);
    command.args(arguments);
    command
}

/// Stops the program and asserts that it ends in time and without an error.
#[track_caller]
fn stops_in_time(program: Program) {
    let start = Instant::now();
    program.signal(Signal::TERM);
    let (status, output) = program.end();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(start.elapsed() < TEN_SECONDS, "{:?}: {output}", start.elapsed());
}

/// A server that accepts connections and never says a word.
fn silent_server() -> (SocketAddr, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, asked) = (listener.local_addr().expect("its address"), Arc::new(AtomicBool::new(false)));
    let flag = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for connection in listener.incoming() {
            kept.push(connection);
            flag.store(true, Ordering::SeqCst);
        }
    });
    (address, asked)
}

/// A proxy that passes bytes on in both directions until it is stalled.
fn proxy_to(server: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, stalled) = (listener.local_addr().expect("its address"), Arc::new(AtomicBool::new(false)));
    let flag = Arc::clone(&stalled);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.expect("a client"), TcpStream::connect(server).expect("the server"));
            let handle = |stream: &TcpStream| stream.try_clone().expect("a second handle");
            for (mut from, mut to) in [(handle(&client), handle(&server)), (server, client)] {
                let stalled = Arc::clone(&flag);
                std::thread::spawn(move || {
                    let mut bytes = [0; 16 * 1024];
                    while let Ok(count @ 1..) = from.read(&mut bytes) {
                        while stalled.load(Ordering::SeqCst) {
                            std::thread::park_timeout(Duration::from_mins(1));
                        }
                        if to.write_all(&bytes[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    (address, stalled)
}

#[tokio::test]
async fn a_mail_server_that_says_nothing_does_not_delay_the_end() {
    let (server, asked) = silent_server();
    let folder = tempfile::tempdir().expect("a folder");
    let mail = ["--smtp-url", &format!("smtp://{server}"), "--mail-from", "a@b.example", "--contact-to", "c@d.example"];
    let program = Program::start(serve(folder.path(), &mail), "mail_server=127.0.0.1");
    let body = json!({ "email": "ada@example.com", "message": "Hello" }).to_string();
    let head = format!("Host: x\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
    raw(program.address(), format!("POST /api/contact HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n{body}")).await;
    wait_until("a connection to the mail server", async || asked.load(Ordering::SeqCst)).await;
    stops_in_time(program);
}

#[tokio::test]
async fn a_database_that_stalls_does_not_delay_the_end() {
    let database = Database::migrated_postgres().await;
    let (server, name) = database.url().rsplit_once('@').and_then(|(_, rest)| rest.split_once('/')).expect("a URL");
    let (proxy, stalled) = proxy_to(server.parse().expect("an address"));
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("postgres://tests@{proxy}/{name}");
    let program = Program::start(serve(folder.path(), &["--database-url", &url]), STARTED);
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "about", "arguments": {} } });
    let posts = [("/api/waitlist", json!({ "email": "ada@example.com" })), ("/mcp", call)];
    let post = |path: &str, body: &serde_json::Value| {
        let body = body.to_string();
        let head = format!("Host: x\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
        format!("POST {path} HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n{body}")
    };
    for (path, body) in &posts {
        raw(program.address(), post(path, body)).await;
    }
    stalled.store(true, Ordering::SeqCst);
    let mut under_way = Vec::new();
    for (path, body) in &posts {
        let mut connection = Connection::open(program.address()).await;
        connection.send(post(path, body)).await;
        under_way.push(connection);
    }
    stops_in_time(program);
    for connection in &mut under_way {
        let answer = connection.read_to_end().await;
        assert!(answer.starts_with("HTTP/1.1 "), "a request whose head was read is answered: {answer:?}");
    }
}

#[tokio::test]
async fn a_client_that_never_reads_does_not_delay_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Program::start(serve(folder.path(), &[]), STARTED);
    let mut client = TcpStream::connect(program.address()).expect("a connection");
    client.set_nonblocking(true).expect("a socket that does not block");
    // Until the responses fill every buffer on the way, and the service no longer reads requests.
    let requests = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1000);
    let mut blocked = 0;
    wait_until("a connection on which nothing moves", async || {
        blocked = if client.write(requests.as_bytes()).is_err() { blocked + 1 } else { 0 };
        blocked > 10
    })
    .await;
    program.wait_for_output("msg=request");
    stops_in_time(program);
}

#[tokio::test]
async fn a_signal_during_the_start_ends_it() {
    let (server, asked) = silent_server();
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("postgres://tests@{server}/site");
    let mut command = serve(folder.path(), &["--database-url", &url]);
    let child = command.stderr(std::process::Stdio::piped()).spawn().expect("the program");
    wait_until("a connection to the database", async || asked.load(Ordering::SeqCst)).await;
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).expect("a process");
    assert_eq!(Program::wait(child, "the end of the program").status.code(), Some(0));
}

#[tokio::test]
async fn the_service_ends_with_an_error_if_a_task_that_it_needs_panics() {
    let folder = tempfile::tempdir().expect("a folder");
    for task in ["writer", "listen", "ops_listen"] {
        let mut command = serve(folder.path(), &[]);
        command.env("PORCHLIGHT_TEST_PANIC", task);
        let (code, output) = Program::run(command);
        assert_eq!(code, 1, "{output}");
        let sentence = format!("The service stopped, because its background task `{task}` failed");
        let lines: Vec<_> = output.lines().filter(|line| line.contains(&sentence)).collect();
        assert_eq!(lines.len(), 1, "{output}");
        assert!(output.contains("msg=panicked location=src/"), "{output}");
    }
}

#[tokio::test]
async fn other_tasks_that_panic_are_started_again_and_counted() {
    let mail =
        ["--smtp-url", "smtp://127.0.0.1:1", "--mail-from", "a@troupe.example", "--contact-to", "b@troupe.example"];
    let started = ["flush_counts", "releases", "prune", "outbox", "alerts"].map(|task| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = serve(folder.path(), &mail);
        command.env("PORCHLIGHT_TEST_PANIC", task);
        (task, Program::start(command, "Porchlight is serving"), folder)
    });
    for (task, mut program, _folder) in started {
        program.wait_for_output(&format!("started again\" task={task}\n"));
        let ops = address_in(program.output(), "ops_listen");
        let metrics = raw(ops, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").await;
        assert!(metrics.contains(&format!("porchlight_task_restarts_total{{task=\"{task}\"}} ")), "{metrics}");
    }
}

#[tokio::test]
async fn a_handler_that_panics_affects_its_request_alone_on_either_listener() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = serve(folder.path(), &[]);
    command.env("PORCHLIGHT_TEST_PANIC", "request");
    let program = Program::start(command, STARTED);
    let ops = address_in(program.output(), "ops_listen");
    for (address, media_type) in [(program.address(), "application/problem+json"), (ops, "text/plain")] {
        let mut connection = Connection::open(address).await;
        for _ in 0..2 {
            connection.send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
            let head = connection.read_until("\r\n\r\n").await;
            assert!(head.starts_with("HTTP/1.1 500 ") && head.contains(media_type), "{head}");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
            connection.read(length.parse().expect("a number")).await;
        }
    }
}

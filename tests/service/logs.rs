//! The log on standard error: its formats, and a reader that stalls.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Program, Terminal, WATCHDOG, address_in, raw, wait_for, wait_until};

/// Part of the last line that `serve` logs at the start.
const STARTED: &str = "not mailed to anybody";

fn serve(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Program::command(folder, &["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"]);
    command.args(arguments);
    command
}

/// A service whose log is read up to the end of its start, and then only if the test reads it.
struct Unread {
    child: Child,
    log: BufReader<ChildStderr>,
    start: String,
}

impl Unread {
    fn start(folder: &Path) -> Self {
        let mut child = serve(folder, &[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program");
        let mut log = BufReader::new(child.stderr.take().expect("its log"));
        let mut start = String::new();
        while !start.contains(STARTED) {
            assert!(log.read_line(&mut start).expect("a line") > 0, "it ended: {start}");
        }
        Self { child, log, start }
    }

    fn address(&self) -> SocketAddr {
        address_in(&self.start, "listen")
    }

    fn stop(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("a process to signal");
    }

    async fn exit_code(&mut self) -> Option<i32> {
        wait_for("the end of the program", async || self.child.try_wait().expect("its state")).await.code()
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends requests on one connection, a hundred at a time, and reads all responses.
fn request(address: SocketAddr, hundreds: usize) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(WATCHDOG)).expect("a timeout");
    let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines();
    for _ in 0..hundreds {
        stream.write_all("HEAD /robots.txt HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100).as_bytes()).expect("to send");
        let ends = lines.by_ref().map(|line| line.expect("a line")).filter(String::is_empty);
        assert_eq!(ends.take(100).count(), 100);
    }
}

#[tokio::test]
async fn nobody_waits_for_the_reader_of_the_log_and_what_it_missed_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut service = Unread::start(folder.path());
    request(service.address(), 60);
    let metrics = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    let metrics = raw(address_in(&service.start, "ops_listen"), metrics).await;
    let metric = metrics.lines().find_map(|line| line.strip_prefix("porchlight_log_lines_dropped_total "));
    let dropped: usize = metric.expect("the metric").parse().expect("a number");
    assert!(dropped > 0);

    let mut log = String::new();
    while !log.contains("dropped lines of the log") {
        assert!(service.log.read_line(&mut log).expect("a line") > 0, "it ended: {log}");
    }
    let report = log.lines().last().expect("a line");
    assert!(report.ends_with(&format!(" lines={dropped}")), "{report}");
    service.stop();
    service.log.read_to_string(&mut log).expect("the rest");
    assert_eq!(log.lines().filter(|line| line.contains(" msg=request ")).count() + dropped, 6000);
    assert_eq!(service.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_reader_of_the_log_that_stalls_does_not_keep_the_service_from_stopping() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut service = Unread::start(folder.path());
    request(service.address(), 60);
    service.stop();
    assert_eq!(service.exit_code().await, Some(0));
}

#[tokio::test]
async fn every_line_of_a_json_log_is_an_object() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start(serve(folder.path(), &["--log-format", "json"]), STARTED);
    let start: Value = serde_json::from_str(program.output().lines().next().expect("a line")).expect("JSON");
    assert_eq!((&start["level"], &start["version"]), (&"info".into(), &env!("CARGO_PKG_VERSION").into()), "{start:#}");
    let address = start["listen"].as_str().expect("an address").parse().expect("an address");
    raw(address, "GET /about HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    program.signal(Signal::TERM);
    let (_, log) = program.end();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let request = lines.iter().find(|line| line["msg"] == "request").expect("a request");
    assert_eq!((&request["route"], &request["status"]), (&"/about".into(), &200.into()), "{request:#}");
    assert!(request["ts"].as_str().is_some_and(|time| time.ends_with('Z')), "{request:#}");
}

#[test]
fn the_sentence_at_the_end_has_the_format_of_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().map(|address| (address.to_string(), taken)).expect("its address");
    let failing = |arguments: &[&str]| {
        let mut command = Program::command(folder.path(), &["serve", "--listen", &taken.0]);
        command.args(arguments);
        command
    };
    let sentence = "The setting `listen` cannot be used: ";
    let (code, screen) = Terminal::new(80).run(failing(&[]), b"");
    assert!(code == 1 && screen.starts_with(sentence), "{screen}");
    let (code, log) = Program::run(failing(&["--log-format", "off"]));
    assert!(code == 1 && log.starts_with(sentence), "{log}");
    let (code, log) = Program::run(failing(&[]));
    assert!(code == 1 && log.contains(&format!(" level=error msg=\"{sentence}")), "{log}");
    let (code, log) = Program::run(failing(&["--log-format", "json"]));
    let line: Value = serde_json::from_str(&log).expect("JSON");
    assert!(code == 1 && line["msg"].as_str().is_some_and(|message| message.starts_with(sentence)), "{log}");
}

#[tokio::test]
async fn without_a_log_nothing_is_written_while_all_is_well() {
    let folder = tempfile::tempdir().expect("a folder");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let mut command = Program::command(folder.path(), &["serve", "--log-format", "off", "--ops-listen", "off"]);
    let command = command.args(["--listen", &port.to_string()]).stderr(Stdio::piped());
    let child = command.spawn().expect("the program");
    wait_until("the start", async || TcpStream::connect(port).is_ok()).await;
    request(port, 1);
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a process to signal");
    let output = Program::wait(child, "the end of the program");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

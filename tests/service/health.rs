//! `porchlight health`: what containers and scripts ask.

use std::net::TcpListener;
use std::path::Path;

use rustix::process::Signal;

use crate::harness::{Program, address_in};

const TOKEN: &str = "a-token-of-the-tests-0123456789";

fn health(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Program::command(folder, &["health"]);
    command.args(arguments);
    Program::run(command)
}

#[track_caller]
fn refused((code, output): (i32, String), expected: &str) {
    assert_eq!(code, 1, "{output}");
    assert!(output.contains(expected) && output.trim().lines().count() == 1, "{output}");
}

#[tokio::test]
async fn health_asks_the_running_service_with_its_own_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Program::command(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.args(["--ops-listen", "0.0.0.0:0", "--ops-token", TOKEN]);
    let program = Program::start(command, "not mailed to anybody");
    let ops = format!("0.0.0.0:{}", address_in(program.output(), "ops_listen").port());

    let right = ["--ops-listen", &ops, "--ops-token", TOKEN];
    assert_eq!(health(folder.path(), &right), (0, "ok\n".to_owned()));
    let (code, ready) = health(folder.path(), &[&right[..], &["--ready"]].concat());
    assert!(code == 0 && ready.contains(r#""ready": true"#), "{ready}");
    refused(health(folder.path(), &["--ops-listen", &ops, "--ops-token", "another-token-0123456789012"]), "401");

    program.signal(Signal::TERM);
    assert_eq!(program.end().0.code(), Some(0));
    refused(health(folder.path(), &right), "does not respond");
}

#[tokio::test]
async fn a_service_that_cannot_be_asked_is_not_well() {
    let folder = tempfile::tempdir().expect("a folder");
    refused(health(folder.path(), &["--ops-listen", "off"]), "`ops_listen` is off");

    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("an address").to_string();
    let closes = std::thread::spawn(move || drop(other.accept()));
    refused(health(folder.path(), &["--ops-listen", &address]), "does not respond");
    closes.join().expect("a thread");
}

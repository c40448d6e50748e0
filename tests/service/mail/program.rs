//! The real program with a mail server.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::harness::{Database, MailServer, Program, raw};

use super::{FROM, TO, message, messages_in};

/// `porchlight serve` with mail, in a folder of its own.
pub fn serve(folder: &Path, smtp_url: &str) -> Command {
    let mut command = Program::command(folder, &["serve", "--listen", "127.0.0.1:0"]);
    command.args(["--smtp-url", smtp_url, "--mail-from", FROM, "--contact-to", TO]);
    command
}

/// Posts a message and has it answered with 200.
pub async fn contact(program: &Program, number: usize) {
    let body = message(number).to_string();
    let head = format!("Host: x\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
    let request = format!("POST /api/contact HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n{body}");
    let answer = raw(program.address(), request).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn a_message_is_answered_at_once_and_mailed_when_the_mail_server_has_time() {
    let mut server = MailServer::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start(serve(folder.path(), &server.url()), "mail_server=127.0.0.1");
    assert!(!program.output().contains("not mailed"), "{}", program.output());
    server.command("hold").await;
    for number in 1..=3 {
        contact(&program, number).await;
    }
    server.wait_for("held").await;
    server.command("resume").await;
    let mut messages = Vec::new();
    while messages.len() < 3 {
        messages.extend(messages_in(&server.next_mail().await));
    }
    assert_eq!(messages, [1, 2, 3]);
    program.signal(Signal::TERM);
    let (status, output) = program.end();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(!output.contains("example.com") && !output.contains("Number"), "{output}");
}

#[tokio::test]
async fn a_mail_interrupted_by_a_kill_is_sent_again_after_the_next_start() {
    let mut server = MailServer::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start(serve(folder.path(), &server.url()), "mail_server=127.0.0.1");
    server.command("hold").await;
    contact(&program, 1).await;
    server.wait_for("held").await;
    program.signal(Signal::KILL);
    program.end();
    server.command("accept").await;

    let database = Database::sqlite_at(&folder.path().join("data/porchlight.db"));
    assert_eq!(database.texts("SELECT state FROM outbox").await, ["leased"]);
    let [name] = database.texts("SELECT mail FROM outbox").await.try_into().expect("one mail");
    database.execute("UPDATE outbox SET at = 0").await;
    let _program = Program::start(serve(folder.path(), &server.url()), "mail_server=127.0.0.1");
    let mail = server.next_mail().await;
    assert_eq!((messages_in(&mail), mail.header("message-id")), (vec![1], format!("<{name}@troupe.example>").as_str()));
}

#[tokio::test]
async fn a_mail_server_that_takes_its_time_does_not_keep_the_program_from_ending() {
    let mut server = MailServer::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start(serve(folder.path(), &server.url()), "mail_server=127.0.0.1");
    server.command("hold").await;
    contact(&program, 1).await;
    server.wait_for("held").await;
    program.signal(Signal::TERM);
    let (status, output) = program.end();
    assert_eq!(status.code(), Some(0), "{output}");
}

#[tokio::test]
async fn an_unavailable_mail_server_is_logged_once_per_try_and_nothing_is_lost() {
    let mut server = MailServer::start().await;
    server.command("stop-listening").await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Program::start(serve(folder.path(), &server.url()), "mail_server=127.0.0.1");
    contact(&program, 1).await;
    program.wait_for_output("the mail server is unavailable: Connection error");
    server.command("listen-again").await;
    contact(&program, 2).await;
    let mut messages = Vec::new();
    while messages.len() < 2 {
        messages.extend(messages_in(&server.next_mail().await));
    }
    messages.sort_unstable();
    assert_eq!(messages, [1, 2]);
}

//! `porchlight move`: from SQLite to PostgreSQL, with the same behaviour afterwards.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::backup::{command, lived_in, send_letter};
use crate::harness::{Database, MailServer, Program, Service, wait_until};
use crate::opening::refused;
use crate::releases::live;

fn move_command(service: &Service, to: &Database) -> Command {
    command(service, &["move", "--to", to.url()])
}

pub(super) fn move_to(service: &Service, to: &Database) -> (i32, String) {
    Program::run(move_command(service, to))
}

/// Waits until a statement is blocked by a lock in this database.
pub(super) async fn wait_for_a_blocked_lock(database: &Database) {
    let here = "(SELECT oid FROM pg_database WHERE datname = current_database())";
    let waiting = format!("SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND database = {here} AND relation <> 0");
    wait_until("a lock that is not granted", async || database.number(&waiting).await > 0).await;
}

/// What clients, people with an unsubscribe link and makers see of a service.
async fn answers(service: &Service, server: &mut MailServer) -> Vec<String> {
    let mut answers = Vec::new();
    for (path, email) in [
        ("/api/download", "ada@example.com"),
        ("/api/download", "bob@example.com"),
        ("/api/waitlist", "bob@example.com"),
        ("/api/waitlist", "cyd@example.com"),
        ("/api/download", "nobody@example.com"),
    ] {
        let answer = service.post(path, &json!({ "email": email })).await.expect_ok();
        answers.push(format!("{path} {email} {}", answer["already"]));
    }
    for token in service.database.texts("SELECT token FROM unsubscribe_tokens ORDER BY address").await {
        answers.push(format!("{token} {}", service.get(&format!("/unsubscribe/{token}")).await.status));
    }
    answers.push(service.head("/releases/latest/Troupe.dmg").await.header("location").to_owned());
    for listing in [&["release", "list", "--json"][..], &["letter", "list", "--json"]] {
        let output = Program::run_to_end(&mut command(service, listing));
        answers.push(serde_json::from_slice::<Value>(&output.stdout).expect("JSON").to_string());
    }
    // This month's letter has been sent, one person has unsubscribed for good, and one is new.
    service.post("/api/download", &json!({ "email": "dan@bücher.example", "updates": true })).await.expect_ok();
    service.post("/api/download", &json!({ "email": "new@example.com", "updates": true })).await.expect_ok();
    for name in ["november.md", "second.md"] {
        let (code, text) = send_letter(service, server, name);
        let mails = server.mails().await.into_iter().flat_map(|mail| mail.recipients);
        answers.push(format!("{code} {text} {:?}", mails.collect::<Vec<_>>()));
    }
    answers
}

#[tokio::test]
async fn on_postgres_the_service_answers_as_before() {
    let (service, mut server) = lived_in(Database::migrated_sqlite().await).await;
    let (target, before) = (Database::postgres().await, service.database.everything().await);
    let (code, output) = move_to(&service, &target);
    assert_eq!(code, 0, "{output}");
    assert_eq!(target.everything_copied().await, before);
    assert_eq!(service.database.everything().await, before, "the source is as it was");
    let (code, output) = move_to(&service, &target);
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("already in"), "{output}");

    let moved = Service::start(live(), target.clone()).await;
    std::fs::create_dir(moved.releases_dir()).unwrap();
    let image = "Troupe-1.4.0.dmg";
    std::fs::copy(service.releases_dir().join(image), moved.releases_dir().join(image)).unwrap();
    let (there, here) = (answers(&moved, &mut server).await, answers(&service, &mut server).await);
    assert_eq!(there, here);
    assert!(there[0].ends_with("ada@example.com true") && there[4].ends_with("nobody@example.com false"), "{there:#?}");
    let last = there.last().unwrap();
    assert!(last.ends_with(r#"["new@example.com"]"#), "one who is new, and nobody twice or who left: {last}");

    // While it runs, it moves pending counts to their tables.
    moved.stop().await;
    let now = target.everything().await;
    refused(move_to(&service, &target), "holds an earlier copy, and one of the two databases has changed since (");
    assert_eq!(target.everything().await, now);
    service.stop().await;
}

#[tokio::test]
async fn a_killed_move_leaves_nothing_and_can_be_repeated() {
    let (service, _server) = lived_in(Database::migrated_sqlite().await).await;
    let (target, before) = (Database::postgres().await, service.database.everything().await);
    Service::start(live(), target.clone()).await.stop().await;
    let fresh = target.everything().await;
    for table in ["signups", "releases", "letter_months"] {
        let lock = target.lock_for_writing(table).await;
        let mut moving = move_command(&service, &target).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for_a_blocked_lock(&target).await;
        moving.kill().unwrap();
        Program::wait(moving, "the end of a killed command");
        lock.release().await;
        assert_eq!(target.everything().await, fresh, "killed at {table}");
    }
    let (code, output) = move_to(&service, &target);
    assert_eq!(code, 0, "{output}");
    assert_eq!(target.everything_copied().await, before);
    service.stop().await;
}

#[tokio::test]
async fn during_a_move_the_old_database_takes_no_writes() {
    let (service, _server) = lived_in(Database::migrated_sqlite().await).await;
    let target = Database::postgres().await;
    Service::start(live(), target.clone()).await.stop().await;
    let lock = target.lock_for_writing("letters").await;
    let moving = move_command(&service, &target).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_a_blocked_lock(&target).await;
    let join = json!({ "email": "late@example.com" });
    service.post("/api/waitlist", &join).await.expect_problem(503, "unavailable");
    lock.release().await;
    assert!(Program::wait(moving, "the end of the move").status.success());
    assert_eq!(target.everything_copied().await, service.database.everything().await);
    service.post("/api/waitlist", &join).await.expect_ok();
    service.stop().await;
}

#[tokio::test]
async fn a_target_that_holds_something_else_or_is_away_is_left_alone() {
    let (service, _server) = lived_in(Database::migrated_sqlite().await).await;
    let foreign = Database::postgres().await;
    foreign.execute("CREATE TABLE notes (text TEXT)").await;
    refused(move_to(&service, &foreign), "is not empty");
    assert_eq!(foreign.everything().await.into_keys().collect::<Vec<_>>(), ["notes"]);

    let other = Service::start(live(), Database::migrated_postgres().await).await;
    other.post("/api/waitlist", &json!({ "email": "zoe@example.com" })).await.expect_ok();
    let before = other.database.everything().await;
    refused(move_to(&service, &other.database), "is not empty");
    assert_eq!(other.database.everything().await, before);
    refused(Program::run(command(&other, &["move", "--to", foreign.url()])), "is not an embedded database");
    other.stop().await;

    for (to, code, words) in [
        ("postgres://porchlight:hunter2@127.0.0.1:1/porchlight", 1, "Nothing was copied to PostgreSQL"),
        ("sqlite:other.db", 2, "must start with postgres://"),
        ("mysql://localhost", 2, "it must start with postgres://."),
        ("postgres://[", 2, "is not of the form postgres://"),
    ] {
        let (found, output) = Program::run(command(&service, &["move", "--to", to]));
        assert_eq!(found, code, "{output}");
        assert!(output.contains(words) && !output.contains("hunter2"), "{output}");
    }
    let empty = tempfile::tempdir().expect("a folder");
    let (code, output) = Program::run(Program::command(empty.path(), &["move", "--to", foreign.url()]));
    assert_eq!((code, std::fs::read_dir(empty.path()).unwrap().count()), (1, 0), "{output}");
    assert!(output.contains("does not exist"), "{output}");
    service.stop().await;
}

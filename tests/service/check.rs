//! `porchlight check`: what works, what could be better, and what has to be put right.

mod https;
mod sender;

use std::process::Command;

use serde_json::Value;

use crate::harness::dns::{NameServer, mx, txt};
use crate::harness::{Authority, Database, MailServer, Program, Service, Site, each_database};
use crate::releases::live;

/// A public address, where nobody listens.
const NOWHERE: &str = "https://0.0.0.0:1";

/// A maker asks how things are with a running service.
fn check(service: &Service, more: &[&str]) -> Command {
    check_at(NOWHERE, service, more)
}

fn check_at(base_url: &str, service: &Service, more: &[&str]) -> Command {
    let releases_dir = service.releases_dir();
    let mut command = Program::command(releases_dir.parent().expect("a folder"), &["check"]);
    command.args(["--database-url", service.database.url(), "--base-url", base_url]);
    command.arg("--releases-dir").arg(&releases_dir).args(more);
    command
}

/// The exit code, and what was found by name.
fn found(mut command: Command) -> (i32, Value) {
    let output = command.arg("--json").output().expect("the program");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let code = output.status.code().expect("an exit code");
    assert_eq!(report["ok"], code == 0, "{report:#}");
    (code, report["checks"].clone())
}

#[track_caller]
fn is(checks: &Value, name: &str, state: &str, words: &str) {
    let mut named = checks.as_array().expect("a list").iter().filter(|check| check["name"] == name);
    let (Some(check), None) = (named.next(), named.next()) else { panic!("{name} is not there once: {checks:#}") };
    assert_eq!(check["state"], state, "{check:#}");
    assert!(check["detail"].as_str().expect("words").contains(words), "{check:#}");
}

/// The database server of the tests does without fsync, which is told.
fn database_state(database: &Database) -> (&'static str, &'static str) {
    if database.is_postgres() { ("note", "`fsync` off") } else { ("ok", "takes writes") }
}

#[tokio::test]
async fn where_all_is_well_every_part_has_its_line() {
    let authority = Authority::new();
    let base_url = format!("https://0.0.0.0:{}", Site::start(&authority.vouch("0.0.0.0")).port());
    let name_server = NameServer::start(&[
        ("troupe.example", txt("v=spf1 mx ~all")),
        ("troupe.example", mx("mail.troupe.example")),
        ("_dmarc.troupe.example", txt("v=DMARC1; p=none")),
    ]);
    for database in each_database().await {
        println!("on {database:?}");
        let mut server = MailServer::start().await;
        let service = Service::start(live(), database).await;
        service.publish("1.4.0");
        let mail = ["--smtp-url", &server.url(), "--mail-from", "a@troupe.example", "--contact-to", "b@troupe.example"];
        let asked = ["--name-server", &name_server.address()];
        let check = || {
            let mut command = check_at(&base_url, &service, &[&mail[..], &asked].concat());
            command.env("SSL_CERT_FILE", authority.path());
            command
        };
        let (code, checks) = found(check());
        assert_eq!(code, 0, "{checks:#}");
        is(&checks, "settings", "ok", &base_url);
        let (state, words) = database_state(&service.database);
        is(&checks, "database", state, words);
        is(&checks, "disk", "ok", "GB are free");
        is(&checks, "site", "ok", "Troupe");
        is(&checks, "release", "ok", "1.4.0 is the newest");
        is(&checks, "https", "ok", "shows a valid certificate");
        is(&checks, "mail", "ok", "127.0.0.1");
        is(&checks, "sender", "ok", "troupe.example has SPF, DMARC and a place for replies");
        assert!(server.mails().await.is_empty(), "it sends nothing");

        let (code, said) = Program::run(check());
        assert_eq!(code, 0, "{said}");
        assert_eq!(said.lines().count(), 8, "{said}");
        assert!(said.lines().all(|line| line.starts_with("✓ ") || line.starts_with("· ")), "{said}");
        service.stop().await;
    }
}

#[tokio::test]
async fn a_live_site_without_a_release_it_can_hand_out_is_in_trouble() {
    for database in each_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        let (code, checks) = found(check(&service, &[]));
        assert_eq!(code, 1, "{checks:#}");
        is(&checks, "release", "trouble", "nothing has been published");
        is(&checks, "mail", "note", "Set `smtp_url`");
        assert_eq!(found(check(&service, &["--download-url", "https://files.example/latest.dmg"])).0, 0);

        service.publish("1.4.0");
        assert_eq!(found(check(&service, &[])).0, 0);
        std::fs::remove_file(service.releases_dir().join("Troupe-1.4.0.dmg")).expect("to be removed");
        let (code, checks) = found(check(&service, &[]));
        assert_eq!(code, 1, "{checks:#}");
        is(&checks, "release", "trouble", "Troupe-1.4.0.dmg cannot be read here");
        service.stop().await;
    }
}

#[test]
fn a_preview_with_nothing_set_up_is_fine_and_nothing_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, checks) = found(Program::command(folder.path(), &["check"]));
    assert_eq!(code, 0, "{checks:#}");
    is(&checks, "settings", "note", "local preview");
    is(&checks, "database", "note", "The first start makes it");
    is(&checks, "release", "note", "sample");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "it only looks");
}

#[test]
fn settings_that_cannot_be_used_are_told_and_end_with_1() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, name) in [
        (&["--listen", "here"][..], "settings"),
        (&["--database-url", "mysql://localhost/porchlight"], "database"),
        (&["--site-dir", "nowhere"], "site"),
    ] {
        let (code, checks) = found(Program::command(folder.path(), &[&["check"], arguments].concat()));
        assert_eq!(code, 1, "{checks:#}");
        let setting = arguments[0].trim_start_matches('-').replace('-', "_");
        is(&checks, name, "trouble", &format!("`{setting}`"));
    }
    let (code, said) = Program::run(Program::command(folder.path(), &["check", "--listen", "here"]));
    assert_eq!(code, 1, "{said}");
    assert!(said.starts_with("✗ settings") && said.ends_with("One thing has to be put right.\n"), "{said}");
}

#[tokio::test]
async fn a_database_that_cannot_be_used_is_told_without_its_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "no database at all, but a text of some length\n".repeat(100)).expect("a file");
    let away = "postgres://porchlight:hunter2@127.0.0.1:1/porchlight".to_owned();
    let unknown = Database::postgres().await.url().replace("/test_", "/unknown_");
    for (url, words) in
        [(format!("sqlite:{}", file.display()), "not a database"), (away, "127.0.0.1"), (unknown, "unknown_")]
    {
        let command = || Program::command(folder.path(), &["check", "--database-url", &url]);
        let (code, checks) = found(command());
        assert_eq!(code, 1, "{checks:#}");
        is(&checks, "database", "trouble", words);
        assert!(!Program::run(command()).1.contains("hunter2"));
    }
}

#[tokio::test]
async fn a_database_of_an_older_or_newer_version_is_told_and_left_as_it_is() {
    for database in each_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        service.publish("1.4.0");
        let migrations = service.database.count("_sqlx_migrations").await;
        let last = "(SELECT MAX(version) FROM _sqlx_migrations)";
        service.database.execute(&format!("DELETE FROM _sqlx_migrations WHERE version = {last}")).await;
        let (code, checks) = found(check(&service, &[]));
        assert_eq!(code, 0, "{checks:#}");
        is(&checks, "database", "note", "The next start brings it up to date");
        assert_eq!(service.database.count("_sqlx_migrations").await, migrations - 1);

        service.database.execute("UPDATE _sqlx_migrations SET version = 9999 WHERE version = 1").await;
        let (code, checks) = found(check(&service, &[]));
        assert_eq!(code, 1, "{checks:#}");
        is(&checks, "database", "trouble", "newer porchlight");
        let (code, said) = service.release(&["list"]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("newer porchlight") && said.trim().lines().count() == 1, "{said}");
        service.stop().await;
    }
}

#[tokio::test]
async fn a_database_that_takes_no_writes_is_told() {
    let service = Service::start(live(), Database::postgres().await).await;
    service.publish("1.4.0");
    let read_only = format!("ALTER DATABASE {} SET default_transaction_read_only = on", service.database.name());
    service.database.execute(&read_only).await;
    let (code, checks) = found(check(&service, &[]));
    assert_eq!(code, 1, "{checks:#}");
    is(&checks, "database", "trouble", "read-only");
    service.stop().await;

    let service = Service::start(live(), Database::sqlite()).await;
    service.publish("1.4.0");
    let lock = service.database.lock().await;
    let (code, checks) = found(check(&service, &[]));
    assert_eq!(code, 1, "{checks:#}");
    is(&checks, "database", "trouble", "locked");
    lock.release().await;
    service.stop().await;
}

#[tokio::test]
async fn a_mail_server_that_is_away_or_does_not_let_us_in_is_in_trouble() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = MailServer::start_with(&["--user", "makers", "--password", "secret"]).await;
    let check = |url: &str| {
        let arguments =
            ["check", "--smtp-url", url, "--mail-from", "a@troupe.example", "--contact-to", "b@troupe.example"];
        Program::command(folder.path(), &[&arguments[..], &["--name-server", "127.0.0.1:1"]].concat())
    };
    for (user, state, code) in [("makers:secret", "ok", 0), ("makers:hunter2", "trouble", 1)] {
        let (ended, checks) = found(check(&format!("smtp://{user}@127.0.0.1:{}", server.port())));
        assert_eq!(ended, code, "{checks:#}");
        is(&checks, "mail", state, "127.0.0.1");
        assert!(!checks.to_string().contains("hunter2"));
    }
    let (code, checks) = found(check("smtp://127.0.0.1:1"));
    assert_eq!(code, 1, "{checks:#}");
    is(&checks, "mail", "trouble", "Check `smtp_url`");
    assert!(server.mails().await.is_empty());
}

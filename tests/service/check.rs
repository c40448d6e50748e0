//! `porchlight check`: what works, what could be improved, and what has failed.

mod dkim;
mod https;
mod postgres_tls;
mod sender;

use std::path::Path;
use std::process::Command;

use porchlight::config::{RawSettings, Settings};
use porchlight::probe::NameServers;
use porchlight::web::checks::run_checks;
use serde_json::{Value, json};

use crate::harness::dns::{NameServer, mx, txt};
use crate::harness::{Authority, Database, MailServer, Program, Service, Site, each_database};
use crate::releases::live;

/// A public URL without a listener.
const NOT_LISTENING: &str = "https://0.0.0.0:1";

/// The command for the database and releases of a running service.
fn check(service: &Service, more: &[&str]) -> Command {
    check_at(NOT_LISTENING, service, more)
}

fn check_at(base_url: &str, service: &Service, more: &[&str]) -> Command {
    let releases_dir = service.releases_dir();
    let mut command = Program::command(releases_dir.parent().expect("a folder"), &["check"]);
    command.args(["--database-url", service.database.url(), "--base-url", base_url]);
    command.arg("--releases-dir").arg(&releases_dir).args(more);
    command
}

/// Runs the command; returns the exit code and the checks.
fn run(mut command: Command) -> (i32, Value) {
    let output = Program::run_to_end(command.arg("--json"));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let code = output.status.code().expect("an exit code");
    assert_eq!(report["ok"], code == 0, "{report:#}");
    (code, report["checks"].clone())
}

#[track_caller]
fn assert_check(checks: &Value, name: &str, state: &str, detail: &str) {
    let mut named = checks.as_array().expect("a list").iter().filter(|check| check["name"] == name);
    let (Some(check), None) = (named.next(), named.next()) else { panic!("{name} is not listed once: {checks:#}") };
    assert_eq!(check["state"], state, "{check:#}");
    assert!(check["detail"].as_str().expect("a text").contains(detail), "{check:#}");
}

/// The PostgreSQL server of the tests runs without fsync, which is noted.
fn database_state(database: &Database) -> (&'static str, &'static str) {
    if database.is_postgres() { ("note", "`fsync` is off") } else { ("ok", "accepts writes") }
}

#[tokio::test]
async fn every_part_has_its_line_when_all_is_well() {
    let authority = Authority::new();
    let base_url = format!("https://0.0.0.0:{}", Site::start(&authority.issue("0.0.0.0")).port());
    let name_server = NameServer::start(&[
        txt("troupe.example", "v=spf1 mx ~all"),
        mx("troupe.example", "mail.troupe.example"),
        txt("_dmarc.troupe.example", "v=DMARC1; p=none"),
    ]);
    for database in each_database().await {
        println!("on {database:?}");
        let mut server = MailServer::start().await;
        let service = Service::start(live(), database).await;
        service.publish("1.4.0");
        let mail = ["--smtp-url", &server.url(), "--mail-from", "a@troupe.example", "--contact-to", "b@troupe.example"];
        let dns = ["--name-server", &name_server.address()];
        let check = || {
            let mut command = check_at(&base_url, &service, &[&mail[..], &dns].concat());
            // The certificate is issued by the system's clock.
            command.env("SSL_CERT_FILE", authority.path()).env_remove("PORCHLIGHT_TEST_NOW");
            command
        };
        let (code, checks) = run(check());
        assert_eq!(code, 0, "{checks:#}");
        assert_check(&checks, "settings", "ok", &base_url);
        let (state, detail) = database_state(&service.database);
        assert_check(&checks, "database", state, detail);
        assert_check(&checks, "disk", "ok", "GB free in");
        assert_check(&checks, "site", "ok", "Troupe");
        assert_check(&checks, "release", "ok", "1.4.0 is the newest");
        assert_check(&checks, "https", "ok", "has a valid certificate");
        assert_check(&checks, "mail", "ok", "127.0.0.1");
        assert_check(&checks, "sender", "ok", "troupe.example has SPF, DMARC and accepts replies");
        assert!(server.mails().await.is_empty(), "check sends no mail");

        let (code, said) = Program::run(check());
        assert_eq!(code, 0, "{said}");
        assert!(said.lines().last().expect("a line").starts_with("Next: The site is that of a sample app."), "{said}");

        let own = tempfile::tempdir().expect("a folder");
        let facts = include_str!("../../content/site.toml").replace("Troupe", "Lantern");
        std::fs::write(own.path().join("site.toml"), facts).expect("a file");
        let mut check = check();
        check.arg("--site-dir").arg(own.path());
        let (code, said) = Program::run(check);
        assert_eq!(code, 0, "{said}");
        assert_eq!(said.lines().count(), 8, "{said}");
        assert!(said.lines().all(|line| line.starts_with("✓ ") || line.starts_with("· ")), "{said}");
        service.stop().await;
    }
}

#[tokio::test]
async fn a_security_txt_that_has_expired_is_noted() {
    let service = Service::start(live(), Database::sqlite()).await;
    let own = tempfile::tempdir().expect("a folder");
    let check_expiring_on = |day: &str| {
        let facts = format!("security_txt_expires = \"{day}\"\n{}", include_str!("../../content/site.toml"));
        std::fs::write(own.path().join("site.toml"), facts).expect("a file");
        run(check(&service, &["--site-dir", &own.path().display().to_string()])).1
    };
    assert_check(&check_expiring_on("2026-11-01"), "security.txt", "note", "It expired on 2026-11-01.");
    let later = check_expiring_on("2027-11-01");
    assert!(!later.to_string().contains("security.txt"), "{later:#}");
    service.stop().await;
}

#[tokio::test]
async fn a_live_site_without_a_release_it_can_serve_fails_the_check() {
    for database in each_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        let (code, checks) = run(check(&service, &[]));
        assert_eq!(code, 1, "{checks:#}");
        assert_check(&checks, "release", "trouble", "nothing has been published");
        assert_check(&checks, "mail", "note", "Set `smtp_url`");
        assert_eq!(run(check(&service, &["--download-url", "https://files.example/latest.dmg"])).0, 0);

        service.publish("1.4.0");
        assert_eq!(run(check(&service, &[])).0, 0);
        std::fs::remove_file(service.releases_dir().join("Troupe-1.4.0.dmg")).expect("to be removed");
        let (code, checks) = run(check(&service, &[]));
        assert_eq!(code, 1, "{checks:#}");
        assert_check(&checks, "release", "trouble", "Troupe-1.4.0.dmg cannot be read here");
        service.stop().await;
    }
}

#[test]
fn a_preview_without_any_setup_passes_and_nothing_is_created() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, checks) = run(Program::command(folder.path(), &["check"]));
    assert_eq!(code, 0, "{checks:#}");
    assert_check(&checks, "settings", "note", "local preview");
    assert_check(&checks, "database", "note", "The first start creates it");
    assert_check(&checks, "release", "note", "sample");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "check creates no file");
}

#[test]
fn invalid_settings_are_reported_and_the_exit_code_is_1() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, name) in [
        (&["--listen", "here"][..], "settings"),
        (&["--database-url", "mysql://localhost/porchlight"], "database"),
        (&["--site-dir", "nowhere"], "site"),
    ] {
        let (code, checks) = run(Program::command(folder.path(), &[&["check"], arguments].concat()));
        assert_eq!(code, 1, "{checks:#}");
        let setting = arguments[0].trim_start_matches('-').replace('-', "_");
        assert_check(&checks, name, "trouble", &format!("`{setting}`"));
    }
    let (code, said) = Program::run(Program::command(folder.path(), &["check", "--listen", "here"]));
    assert_eq!(code, 1, "{said}");
    assert!(said.starts_with("✗ settings") && said.ends_with("1 check failed.\n"), "{said}");
}

#[tokio::test]
async fn an_unusable_database_is_reported_without_its_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "no database at all, but a text of some length\n".repeat(100)).expect("a file");
    let away = "postgres://porchlight:hunter2@127.0.0.1:1/porchlight".to_owned();
    let unknown = Database::postgres().await.url().replace("/test_", "/unknown_");
    for (url, detail) in
        [(format!("sqlite:{}", file.display()), "not a database"), (away, "127.0.0.1"), (unknown, "unknown_")]
    {
        let command = || Program::command(folder.path(), &["check", "--database-url", &url]);
        let (code, checks) = run(command());
        assert_eq!(code, 1, "{checks:#}");
        assert_check(&checks, "database", "trouble", detail);
        assert!(!Program::run(command()).1.contains("hunter2"));
    }
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_reported_and_not_changed() {
    for database in each_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        service.publish("1.4.0");
        service.database.execute("UPDATE _sqlx_migrations SET version = 9999 WHERE version = 1").await;
        let (code, checks) = run(check(&service, &[]));
        assert_eq!(code, 1, "{checks:#}");
        assert_check(&checks, "database", "trouble", "newer porchlight");
        let (code, said) = service.release(&["list"]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("newer porchlight") && said.trim().lines().count() == 1, "{said}");
        service.stop().await;
    }
}

#[tokio::test]
async fn a_database_that_accepts_no_writes_fails_the_check() {
    let service = Service::start(live(), Database::migrated_postgres().await).await;
    service.publish("1.4.0");
    let read_only = format!("ALTER DATABASE {} SET default_transaction_read_only = on", service.database.name());
    service.database.execute(&read_only).await;
    let (code, checks) = run(check(&service, &[]));
    assert_eq!(code, 1, "{checks:#}");
    assert_check(&checks, "database", "trouble", "read-only");
    service.stop().await;

    let service = Service::start(live(), Database::migrated_sqlite().await).await;
    service.publish("1.4.0");
    let lock = service.database.lock().await;
    let (code, checks) = run(check(&service, &[]));
    assert_eq!(code, 1, "{checks:#}");
    assert_check(&checks, "database", "trouble", "locked");
    lock.release().await;
    service.stop().await;
}

#[tokio::test]
async fn an_unreachable_mail_server_or_a_wrong_password_fails_the_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = MailServer::start_with(json!({ "user": "makers", "password": "secret" })).await;
    let check = |url: &str| {
        let arguments =
            ["check", "--smtp-url", url, "--mail-from", "a@troupe.example", "--contact-to", "b@troupe.example"];
        Program::command(folder.path(), &[&arguments[..], &["--name-server", "127.0.0.1:1"]].concat())
    };
    for (user, state, code) in [("makers:secret", "ok", 0), ("makers:hunter2", "trouble", 1)] {
        let (exit_code, checks) = run(check(&format!("smtp://{user}@127.0.0.1:{}", server.port())));
        assert_eq!(exit_code, code, "{checks:#}");
        assert_check(&checks, "mail", state, "127.0.0.1");
        assert!(!checks.to_string().contains("hunter2"));
    }
    let (code, checks) = run(check("smtp://127.0.0.1:1"));
    assert_eq!(code, 1, "{checks:#}");
    assert_check(&checks, "mail", "trouble", "Check `smtp_url`");
    assert!(server.mails().await.is_empty());
}

#[tokio::test]
async fn the_check_says_how_the_connection_to_the_mail_server_is_secured() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = MailServer::start().await;
    for (url, state, code, detail) in [
        ("smtp://127.0.0.1:PORT", "ok", 0, "TLS if the server offers it, since it is on this machine"),
        ("smtp://0.0.0.0:PORT", "trouble", 1, "it offers no TLS, which `smtp_url` requires"),
        ("smtp://0.0.0.0:PORT?tls=off", "note", 0, "no TLS (`?tls=off`)"),
    ] {
        let url = url.replace("PORT", &server.port().to_string());
        let mail = ["--smtp-url", &url, "--mail-from", "a@troupe.example", "--contact-to", "b@troupe.example"];
        let check = ["check", "--name-server", "127.0.0.1:1"];
        let (exit_code, checks) = run(Program::command(folder.path(), &[&check[..], &mail].concat()));
        assert_check(&checks, "mail", state, detail);
        assert_eq!(exit_code, code, "{checks:#}");
    }
}

#[tokio::test]
async fn how_long_messages_are_kept_is_shown_if_it_is_limited() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = MailServer::start().await.url();
    let mail = ["--smtp-url", &url, "--mail-from", "a@troupe.example", "--contact-to", "b@troupe.example"];
    let check = [&["check", "--name-server", "127.0.0.1:1"][..], &mail].concat();
    let (_, checks) = run(Program::command(folder.path(), &[&check[..], &["--keep-messages", "18 months"]].concat()));
    assert_check(&checks, "messages", "ok", "deleted 18 months after they were forwarded");
    let (_, checks) = run(Program::command(folder.path(), &check));
    assert!(checks.as_array().expect("a list").iter().all(|check| check["name"] != "messages"), "{checks:#}");
}

/// A mail server whose greeting tries to control the terminal.
fn hostile_mail_server() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let greeting = "554 5.7.1 \u{1b}]0;owned\u{7}\u{9b}2J \u{202e}go away\r\n";
            let _ = std::io::Write::write_all(&mut client, greeting.as_bytes());
        }
    });
    address
}

#[tokio::test]
async fn a_reply_of_a_mail_server_cannot_control_the_terminal() {
    let service = Service::start(porchlight::config::RawSettings::default(), Database::migrated_sqlite().await).await;
    let download = json!({ "email": "ada@example.com", "updates": true });
    service.post("/api/download", &download).await.expect_ok();
    let letter = service.file("a.md", "# News\n\nText.\n").display().to_string();
    let url = format!("smtp://{}", hostile_mail_server());
    let mail = ["--smtp-url", &url, "--mail-from", "a@troupe.example", "--contact-to", "b@troupe.example"];
    let other = ["--postal-address", "1 Lamp Street", "--base-url", "https://troupe.example"];
    for arguments in [
        &["check", "--name-server", "127.0.0.1:1"][..],
        &["check", "--name-server", "127.0.0.1:1", "--json"],
        &["letter", "test", &letter, "--to", "me@troupe.example"],
        &["letter", "send", &letter, "--yes"],
    ] {
        let mut command = service.command(&[arguments, &mail, &other].concat());
        command.args(["--database-url", service.database.url()]);
        let (code, output) = Program::run(command);
        assert!(code == 1 && output.contains("go away"), "{arguments:?}: {output:?}");
        let harmful = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!output.contains(harmful), "{arguments:?}: {output:?}");
    }
    service.stop().await;
}

#[tokio::test]
async fn the_running_service_finds_what_the_command_finds_with_its_own_database() {
    for database in each_database().await {
        println!("on {database:?}");
        let service = Service::start(live(), database).await;
        service.publish("1.4.0");
        let (_, expected) = run(check(&service, &["--name-server", "127.0.0.1:1"]));
        let written = RawSettings {
            base_url: Some(NOT_LISTENING.to_owned()),
            database_url: Some(service.database.url().to_owned()),
            releases_dir: Some(service.releases_dir().display().to_string()),
            ..RawSettings::default()
        };
        let settings = Settings::load(Some(Path::new("/dev/null")), &written).expect("settings that can be used");
        let name_servers = NameServers::parse("127.0.0.1:1").expect("a name server");
        let store = service.database.store();
        let before = service.database.everything().await;
        let report = run_checks(&settings, &name_servers, &service.clock, Some(&store)).await;
        assert_eq!(service.database.everything().await, before);
        // The test has other variables and another `data_dir`.
        let of_both = |checks: Value| -> Vec<Value> {
            let differ = ["environment", "disk", "images"];
            let checks = checks.as_array().expect("a list").iter();
            checks.filter(|check| !differ.contains(&check["name"].as_str().expect("a name"))).cloned().collect()
        };
        let found = serde_json::to_value(&report.findings).expect("JSON");
        assert_eq!(of_both(found), of_both(expected));
        store.ping().await.expect("the database is still open");
        store.close().await;
        service.stop().await;
    }
}

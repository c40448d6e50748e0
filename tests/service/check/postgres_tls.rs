//! TLS to PostgreSQL. `0.0.0.0` is reachable on every machine and counts as another one.

use super::{assert_check, run};
use crate::harness::{Authority, Database, Program, Service, start_with_tls};
use crate::releases::live;

/// Checks the database at this URL. Returns the exit code and the checks.
///
/// Of the system's authorities there is one, which signed nothing: to read all of them takes a debug build long.
fn check(url: &str) -> (i32, serde_json::Value) {
    let system = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Program::command(folder.path(), &["check", "--database-url", url]);
    command.args(["--base-url", "http://127.0.0.1:1"]).env("SSL_CERT_FILE", system.path());
    run(command)
}

fn url(port: u16, options: &str) -> String {
    format!("postgres://tests@0.0.0.0:{port}/postgres{options}")
}

#[tokio::test]
async fn a_server_on_another_machine_has_to_prove_who_it_is() {
    let authority = Authority::new();
    let trusted = format!("sslrootcert={}", authority.path().display());
    let server = start_with_tls(&authority.issue("0.0.0.0"));

    let service = Service::start(live(), Database::postgres_at(&url(server.port, &format!("?{trusted}")))).await;
    service.post("/api/waitlist", &serde_json::json!({ "email": "ada@example.com" })).await.expect_ok();
    service.stop().await;
    let (code, checks) = check(&url(server.port, &format!("?{trusted}")));
    assert_check(&checks, "database", "note", "0.0.0.0");
    assert_check(&checks, "database", "note", ", verified TLS, schema ");
    assert_eq!(code, 0, "{checks:#}");

    for options in ["", "?sslmode=verify-full", "?sslmode=verify-ca"] {
        let (code, checks) = check(&url(server.port, options));
        assert_eq!(code, 1, "{checks:#}");
        assert_check(&checks, "database", "trouble", "certificate");
        assert_check(&checks, "database", "trouble", "in `database_url`, `sslrootcert` names the authority to trust");
    }
    let (code, checks) = check(&url(server.port, "?sslmode=require"));
    assert_check(&checks, "database", "note", ", TLS, certificate not verified, schema ");
    assert_check(
        &checks,
        "database",
        "note",
        "With `sslmode=require` anyone on the network path could pose as the server.",
    );
    assert_eq!(code, 0, "{checks:#}");

    let elsewhere = start_with_tls(&authority.issue("db.example"));
    let (code, checks) = check(&url(elsewhere.port, &format!("?{trusted}")));
    assert_check(&checks, "database", "trouble", "not valid for name");
    assert_eq!(code, 1, "{checks:#}");
    let (_, checks) = check(&url(elsewhere.port, &format!("?sslmode=verify-ca&{trusted}")));
    assert_check(&checks, "database", "note", ", TLS, host name not verified");
}

#[tokio::test]
async fn a_server_without_tls_is_used_on_this_machine_or_when_the_url_says_so() {
    let database = Database::migrated_postgres().await;
    let elsewhere = database.url().replace("127.0.0.1", "0.0.0.0");
    for local in [database.url().to_owned(), database.url().replace("127.0.0.1", "localhost")] {
        assert_check(&check(&local).1, "database", "note", ", on this machine, schema ");
    }
    let (code, checks) = check(&elsewhere);
    assert_eq!(code, 1, "{checks:#}");
    assert_check(&checks, "database", "trouble", "server does not support TLS (in `database_url`, ");
    let (code, checks) = check(&format!("{elsewhere}?sslmode=disable"));
    assert_check(&checks, "database", "note", ", not encrypted, schema ");
    assert_check(&checks, "database", "note", "With `sslmode=disable` anyone on the network path can read and change");
    assert_eq!(code, 0, "{checks:#}");
    for mode in ["prefer", "allow"] {
        let (code, checks) = check(&format!("{elsewhere}?sslmode={mode}"));
        assert_eq!(code, 1, "{checks:#}");
        assert_check(
            &checks,
            "database",
            "trouble",
            "The setting `database_url` cannot be used: its `sslmode` allows a connection without TLS",
        );
    }
}

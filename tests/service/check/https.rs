//! The check of the site's certificate. Its findings are notes and never make the check fail.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use porchlight::clock::Clock;

use super::{assert_check, run};
use crate::harness::{Authority, Identity, Program, Site};

const DAY: Duration = Duration::from_hours(24);

/// Checks the site at a local port, trusting the authorities in this file.
#[track_caller]
fn assert_finding(port: u16, trusted: &Path, state: &str, detail: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let base_url = format!("https://localhost:{port}");
    let mut command = Program::command(folder.path(), &["check", "--base-url", &base_url]);
    command.env("SSL_CERT_FILE", trusted).env_remove("SSL_CERT_DIR");
    // The certificates of the tests are valid by the clock of the system.
    command.env_remove("PORCHLIGHT_TEST_NOW");
    let (code, checks) = run(command);
    assert_check(&checks, "https", state, detail);
    assert_eq!(code, 0, "{checks:#}");
}

#[track_caller]
fn assert_finding_of(identity: &Identity, trusted: &Authority, state: &str, detail: &str) {
    assert_finding(Site::start(identity).port(), &trusted.path(), state, detail);
}

#[test]
fn a_certificate_is_valid_for_its_name_until_it_expires_if_its_issuer_is_trusted() {
    let (authority, other, now) = (Authority::new(), Authority::new(), Clock::System.now());
    assert_finding_of(&authority.issue("localhost"), &authority, "ok", "has a valid certificate");
    assert_finding_of(&authority.issue("troupe.example"), &authority, "note", "is not valid: it is for another name");
    assert_finding_of(&other.issue("localhost"), &authority, "note", "this system does not trust its issuer");

    let expired = authority.issue_for("localhost", now.before(DAY * 90), now.before(DAY));
    assert_finding_of(&expired, &authority, "note", &format!("it expired on {}. Browsers", now.before(DAY).date()));
    let later = authority.issue_for("localhost", now.after(DAY), now.after(DAY * 90));
    assert_finding_of(
        &later,
        &authority,
        "note",
        &format!("it is not valid before {}. Browsers", now.after(DAY).date()),
    );
}

#[test]
fn a_certificate_that_expires_within_three_weeks_is_reported_with_the_day() {
    let (authority, now) = (Authority::new(), Clock::System.now());
    for (days, state) in [(20, "note"), (22, "ok")] {
        let end = now.after(DAY * days);
        let identity = authority.issue_for("localhost", now.before(DAY), end);
        let detail = if state == "ok" { "valid certificate" } else { &format!("expires on {}. Renew it", end.date()) };
        assert_finding_of(&identity, &authority, state, detail);
    }
}

#[test]
fn a_self_signed_certificate_is_reported() {
    let (authority, own) = (Authority::new(), Authority::new());
    assert_finding_of(&own.identity(), &authority, "note", "it is not a certificate for a website (CaUsedAsEndEntity)");
}

#[test]
fn a_site_that_cannot_be_reached_from_here_is_a_note() {
    let authority = Authority::new();
    let trusted = authority.path();
    assert_finding(1, &trusted, "note", "localhost:1 cannot be reached from here: Connection refused");
    let silent = TcpListener::bind("0.0.0.0:0").expect("a listener");
    let port = silent.local_addr().expect("an address").port();
    assert_finding(
        port,
        &trusted,
        "note",
        "cannot be reached from here: it did not respond in time. Check whether it can",
    );
    assert_finding(Site::start_without_tls().port(), &trusted, "note", "The TLS handshake with");
}

#[test]
fn without_certificate_authorities_the_certificate_cannot_be_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").expect("a file");
    let site = Site::start(&Authority::new().issue("localhost"));
    assert_finding(site.port(), &empty, "note", "no list of trusted certificate authorities. Install ca-certificates");
}

#[test]
fn a_site_without_https_is_not_checked_for_a_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    for base_url in ["http://localhost:1", "http://troupe.example"] {
        let (_, checks) = run(Program::command(folder.path(), &["check", "--base-url", base_url]));
        assert!(checks.as_array().expect("a list").iter().all(|check| check["name"] != "https"), "{checks:#}");
    }
}

//! What browsers make of the site's certificate. It is noted, and never ends a check with 1.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use porchlight::clock::Clock;

use super::{found, is};
use crate::harness::{Authority, Identity, Program, Site};

const DAY: Duration = Duration::from_hours(24);

/// What is found at a port of this machine by who trusts these authorities.
#[track_caller]
fn finds(port: u16, trusted: &Path, state: &str, words: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let base_url = format!("https://localhost:{port}");
    let mut command = Program::command(folder.path(), &["check", "--base-url", &base_url]);
    command.env("SSL_CERT_FILE", trusted).env_remove("SSL_CERT_DIR");
    let (code, checks) = found(command);
    is(&checks, "https", state, words);
    assert_eq!(code, 0, "{checks:#}");
}

#[track_caller]
fn finds_of(identity: &Identity, trusted: &Authority, state: &str, words: &str) {
    finds(Site::start(identity).port(), &trusted.path(), state, words);
}

#[test]
fn a_certificate_is_valid_for_its_name_while_it_lasts_if_somebody_vouches_for_it() {
    let (authority, stranger, now) = (Authority::new(), Authority::new(), Clock::System.now());
    finds_of(&authority.vouch("localhost"), &authority, "ok", "shows a valid certificate");
    finds_of(&authority.vouch("troupe.example"), &authority, "note", "is not valid: it is for another name");
    finds_of(&stranger.vouch("localhost"), &authority, "note", "it comes from nobody whom this machine trusts");

    let ended = authority.vouch_for("localhost", now.before(DAY * 90), now.before(DAY));
    finds_of(&ended, &authority, "note", &format!("it ended on {}. Browsers", now.before(DAY).date()));
    let later = authority.vouch_for("localhost", now.after(DAY), now.after(DAY * 90));
    finds_of(&later, &authority, "note", &format!("it begins on {}. Browsers", now.after(DAY).date()));
}

#[test]
fn a_certificate_that_ends_within_three_weeks_is_told_with_the_day() {
    let (authority, now) = (Authority::new(), Clock::System.now());
    for (days, state) in [(20, "note"), (22, "ok")] {
        let end = now.after(DAY * days);
        let identity = authority.vouch_for("localhost", now.before(DAY), end);
        let words = if state == "ok" { "valid certificate" } else { &format!("ends on {}. Renew it", end.date()) };
        finds_of(&identity, &authority, state, words);
    }
}

#[test]
fn a_certificate_made_by_oneself_is_told() {
    let (authority, own) = (Authority::new(), Authority::new());
    finds_of(&own.identity(), &authority, "note", "it is not fit for a site (CaUsedAsEndEntity)");
}

#[test]
fn a_site_that_does_not_answer_here_may_answer_elsewhere() {
    let authority = Authority::new();
    let trusted = authority.path();
    finds(1, &trusted, "note", "localhost:1 cannot be reached from here: Connection refused");
    let silent = TcpListener::bind("0.0.0.0:0").expect("a listener");
    let port = silent.local_addr().expect("an address").port();
    finds(port, &trusted, "note", "cannot be reached from here: it does not answer. See whether it can");
    finds(Site::start_without_tls().port(), &trusted, "note", "does not speak TLS");
}

#[test]
fn without_a_list_of_authorities_nothing_can_be_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    let nobody = folder.path().join("nobody");
    std::fs::write(&nobody, "").expect("a file");
    let site = Site::start(&Authority::new().vouch("localhost"));
    finds(site.port(), &nobody, "note", "no list of authorities. Install ca-certificates");
}

#[test]
fn a_site_without_https_shows_no_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    for base_url in ["http://localhost:1", "http://troupe.example"] {
        let (_, checks) = found(Program::command(folder.path(), &["check", "--base-url", base_url]));
        assert!(checks.as_array().expect("a list").iter().all(|check| check["name"] != "https"), "{checks:#}");
    }
}

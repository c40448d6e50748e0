//! The check of the DNS record of the key that signs mail. Its findings are notes and never make the check fail.

use std::path::Path;

use super::{assert_check, run};
use crate::harness::dns::{NameServer, a, cname, txt};
use crate::harness::{DkimKey, MailServer, Program};

const NAME: &str = DkimKey::RECORD_NAME;

/// Runs the check with a mail server that works.
async fn findings(key: &Path, name_server: &str) -> (i32, serde_json::Value) {
    let (server, folder) = (MailServer::start().await, tempfile::tempdir().expect("a folder"));
    let mut command = Program::command(folder.path(), &["check", "--name-server", name_server]);
    command.args(["--smtp-url", &server.url(), "--mail-from", "hello@troupe.example"]);
    command.args(["--contact-to", "makers@troupe.example", "--dkim-selector", "mail", "--dkim-key"]).arg(key);
    run(command)
}

async fn assert_finding(key: &DkimKey, records: &[String], state: &str, detail: &str) {
    let name_server = NameServer::start(records);
    let (code, checks) = findings(&key.path(), &name_server.address()).await;
    assert_check(&checks, "dkim", state, detail);
    assert_eq!(code, 0, "{checks:#}");
    let sender = checks.as_array().unwrap().iter().find(|check| check["name"] == "sender").unwrap();
    assert!(!sender["detail"].as_str().unwrap().contains("DKIM"), "it has a line of its own: {sender:#}");
}

#[tokio::test]
async fn the_record_of_the_key_is_found() {
    let key = DkimKey::rsa();
    let has_key = "mail._domainkey.troupe.example has the public key of `dkim_key`";
    assert_finding(&key, &[txt(NAME, &key.record)], "ok", has_key).await;
    let target = "dkim.mail.example";
    assert_finding(&key, &[cname(NAME, target), a(target), txt(target, &key.record)], "ok", has_key).await;
}

#[tokio::test]
async fn a_record_that_does_not_fit_the_key_is_noted_with_what_to_do() {
    let (key, other) = (DkimKey::rsa(), DkimKey::rsa());
    let record = || txt(NAME, &key.record);
    for (records, detail) in [
        (
            vec![],
            "does not exist in DNS, so receivers cannot verify mail: add the TXT record that `porchlight mail record`",
        ),
        (vec![txt(NAME, &other.record)], "does not have the public key of `dkim_key`"),
        (vec![txt(NAME, "v=spf1 -all")], "does not have the public key of `dkim_key`"),
        (vec![txt(NAME, "v=DKIM1; k=rsa; p=")], "says that the key is revoked (`p=` is empty)"),
        (vec![record(), txt(NAME, &other.record)], "has 2 TXT records"),
        (vec![txt(NAME, &key.record.replace("k=rsa;", "k=rsa; t=y;"))], "has the flag `t=y`"),
    ] {
        assert_finding(&key, &records, "note", detail).await;
    }
}

#[tokio::test]
async fn receivers_that_do_not_verify_ed25519_are_noted() {
    let key = DkimKey::ed25519();
    assert_finding(&key, &[txt(NAME, &key.record)], "note", "which some large receivers do not verify").await;
    assert_finding(&key, &[], "note", "does not exist in DNS").await;
}

#[tokio::test]
async fn a_failed_lookup_is_reported_and_nothing_is_guessed() {
    let silent = NameServer::silent();
    let (code, checks) = findings(&DkimKey::rsa().path(), &silent).await;
    assert_check(
        &checks,
        "dkim",
        "note",
        &format!("The DNS lookup of {NAME} failed: {silent} did not respond in time."),
    );
    assert_eq!(code, 0, "{checks:#}");
}

#[tokio::test]
async fn a_key_that_cannot_be_used_is_a_failure_of_mail() {
    let name_server = NameServer::start(&[]);
    let (code, checks) = findings(Path::new("missing.pem"), &name_server.address()).await;
    assert_check(&checks, "mail", "trouble", "The setting `dkim_key` cannot be used: missing.pem could not be read");
    assert_eq!(code, 1, "{checks:#}");
    assert!(checks.as_array().unwrap().iter().all(|check| check["name"] != "dkim"), "{checks:#}");
}

//! The check of the DNS records of the sender's domain. Its findings are notes and never make the check
//! fail.

use super::{assert_check, run};
use crate::harness::dns::{NameServer, a, cname, mx, txt};
use crate::harness::{MailServer, Program};

const DOMAIN: &str = "troupe.example";
const SPF: &str = "v=spf1 include:_spf.mail.example ~all";
const DMARC: &str = "v=DMARC1; p=none";

fn spf() -> String {
    txt(DOMAIN, SPF)
}

fn exchange() -> String {
    mx(DOMAIN, "mx.mail.example")
}

fn dmarc() -> String {
    txt("_dmarc.troupe.example", DMARC)
}

/// A domain with all the records that it needs.
fn complete() -> Vec<String> {
    vec![txt(DOMAIN, "some-verification=123"), spf(), exchange(), dmarc()]
}

/// The complete domain with `old` replaced by `new`.
fn replaced(old: &str, new: &[String]) -> Vec<String> {
    let mut records = complete();
    records.retain(|record| record != old);
    assert_eq!(records.len(), complete().len() - 1, "{old} is not a record");
    records.extend_from_slice(new);
    records
}

/// The complete domain with one more record.
fn with(record: String) -> Vec<String> {
    [complete(), vec![record]].concat()
}

/// Runs the check with a mail server that works.
struct Check {
    folder: tempfile::TempDir,
    server: MailServer,
}

impl Check {
    async fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), server: MailServer::start().await }
    }

    #[track_caller]
    fn finds(&self, from: &str, name_server: &str, state: &str, detail: &str) {
        let smtp_url = self.server.url();
        let mail = ["--smtp-url", &smtp_url, "--mail-from", from, "--contact-to", "makers@troupe.example"];
        let check = ["check", "--name-server", name_server];
        let (code, checks) = run(Program::command(self.folder.path(), &[&check[..], &mail].concat()));
        assert_check(&checks, "sender", state, detail);
        assert_eq!(code, 0, "{checks:#}");
    }

    #[track_caller]
    fn finds_of(&self, records: &[String], state: &str, detail: &str) {
        self.finds("hello@troupe.example", &NameServer::start(records).address(), state, detail);
    }
}

#[tokio::test]
async fn a_domain_with_all_records_passes() {
    let check = Check::new().await;
    let passes = "troupe.example has SPF, DMARC and accepts replies; DKIM cannot be checked from here";
    check.finds_of(&complete(), "ok", passes);
    check.finds_of(&replaced(&exchange(), &[a(DOMAIN)]), "ok", passes);

    let target = "dmarc.mail.example";
    let alias = [cname("_dmarc.troupe.example", target), a(target), txt(target, DMARC)];
    check.finds_of(&replaced(&dmarc(), &alias), "ok", passes);
}

#[tokio::test]
async fn a_missing_record_is_reported_with_an_example() {
    let check = Check::new().await;
    let no_spf = "no SPF: add a TXT record such as \"v=spf1 include:";
    check.finds_of(&replaced(&spf(), &[]), "note", no_spf);
    let no_dmarc = "no DMARC: add a TXT record such as \"v=DMARC1; p=none\" at _dmarc.troupe.example";
    check.finds_of(&replaced(&dmarc(), &[]), "note", no_dmarc);
    let no_mx = "Replies and bounces cannot be delivered: add an MX record such as";
    check.finds_of(&replaced(&exchange(), &[]), "note", no_mx);

    let bare = NameServer::start(&[txt(DOMAIN, "some-verification=123")]);
    for detail in [no_spf, no_dmarc, no_mx, "DKIM cannot be checked"] {
        check.finds("hello@troupe.example", &bare.address(), "note", detail);
    }
}

#[tokio::test]
async fn records_that_contradict_each_other_or_forbid_mail_are_reported() {
    let check = Check::new().await;
    let two_spf = with(txt(DOMAIN, "v=spf1 mx -all"));
    check.finds_of(&two_spf, "note", "troupe.example has 2 SPF records, which receivers treat as an error");
    let two_dmarc = with(txt("_dmarc.troupe.example", "v=DMARC1; p=reject"));
    check.finds_of(&two_dmarc, "note", "_dmarc.troupe.example has 2 DMARC records, so receivers ignore all of them");
    let no_sender = replaced(&spf(), &[txt(DOMAIN, "v=spf1 -all")]);
    check.finds_of(&no_sender, "note", "SPF of troupe.example allows no server to send");
    let null_mx = replaced(&exchange(), &[mx(DOMAIN, ".")]);
    check.finds_of(&null_mx, "note", "the MX record of troupe.example rejects all mail");
}

#[tokio::test]
async fn dmarc_of_a_parent_domain_counts_and_the_parent_is_named() {
    let check = Check::new().await;
    let subdomain = "news.mail.troupe.example";
    let name_server = NameServer::start(&[complete(), vec![txt(subdomain, SPF), a(subdomain)]].concat());
    let detail = "news.mail.troupe.example has SPF, DMARC (of troupe.example) and accepts replies";
    check.finds("hello@news.mail.troupe.example", &name_server.address(), "ok", detail);

    let top_level = replaced(&dmarc(), &[txt("_dmarc.example", DMARC)]);
    check.finds_of(&top_level, "note", "troupe.example has no DMARC");
}

#[tokio::test]
async fn a_domain_that_does_not_exist_is_reported() {
    let check = Check::new().await;
    let name_server = NameServer::start(&complete());
    let detail = "trope.example does not exist in DNS, so receivers reject its mail. Check `mail_from`.";
    check.finds("hello@trope.example", &name_server.address(), "note", detail);
}

#[tokio::test]
async fn a_domain_of_any_script_is_looked_up_in_its_ascii_form() {
    let check = Check::new().await;
    let name = "xn--mnchen-3ya.example";
    let name_server = NameServer::start(&[txt(name, SPF), a(name), txt(&format!("_dmarc.{name}"), DMARC)]);
    check.finds("Troupe <hello@MÜNCHEN.example>", &name_server.address(), "ok", "xn--mnchen-3ya.example has SPF");
}

#[tokio::test]
async fn a_record_may_be_long() {
    let check = Check::new().await;
    let networks = (0..200).map(|number| format!("ip4:192.0.2.{number}")).collect::<Vec<_>>().join(" ");
    let name_server = NameServer::start(&replaced(&spf(), &[txt(DOMAIN, &format!("v=spf1 {networks} ~all"))]));
    check.finds("hello@troupe.example", &name_server.address(), "ok", "has SPF, DMARC");
}

#[tokio::test]
async fn a_failed_lookup_is_reported_and_nothing_is_guessed() {
    let check = Check::new().await;
    let name_server = NameServer::start(&complete());
    let silent = NameServer::silent();
    for (domain, address, error) in [
        ("troupe.example", silent, "did not respond in time."),
        ("troupe.invalid", name_server.address(), "responded with an error: REFUSED."),
        ("troupe.example", "127.0.0.1:1".to_owned(), "cannot be reached: "),
    ] {
        let detail = format!("The DNS lookup failed: {address} {error}");
        check.finds(&format!("hello@{domain}"), &address, "note", &detail);
        check.finds(&format!("hello@{domain}"), &address, "note", &format!("{domain} needs SPF, DMARC and DKIM"));
    }
}

#[test]
fn a_name_server_must_be_an_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, said) = Program::run(Program::command(folder.path(), &["check", "--name-server", "dns.example"]));
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("it is not an address such as 9.9.9.9"), "{said}");
}

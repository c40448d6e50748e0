//! What DNS says of the domain that mail comes from. It is noted, and never ends a check with 1.

use simple_dns::rdata::RData;

use super::{found, is};
use crate::harness::dns::{Manner, NameServer, a, cname, mx, txt};
use crate::harness::{MailServer, Program};

type Zone = Vec<(&'static str, RData<'static>)>;

const SPF: &str = "v=spf1 include:_spf.mail.example ~all";
const DMARC: &str = "v=DMARC1; p=none";

/// A domain that has everything.
fn whole() -> Zone {
    vec![
        ("troupe.example", txt("some-verification=123")),
        ("troupe.example", txt(SPF)),
        ("troupe.example", mx("mx.mail.example")),
        ("_dmarc.troupe.example", txt(DMARC)),
    ]
}

/// The same without the records at this place that say this.
fn without(name: &str, data: &RData<'_>) -> Zone {
    let mut zone = whole();
    zone.retain(|record| record != &(name, data.clone()));
    assert_eq!(zone.len(), whole().len() - 1, "nothing was taken away");
    zone
}

fn and(mut zone: Zone, name: &'static str, data: RData<'static>) -> Zone {
    zone.push((name, data));
    zone
}

/// Mail goes from this address, and somebody is asked about it. Everything else is well enough.
struct Maker {
    folder: tempfile::TempDir,
    server: MailServer,
}

impl Maker {
    async fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), server: MailServer::start().await }
    }

    #[track_caller]
    fn finds(&self, from: &str, name_server: &str, state: &str, words: &str) {
        let smtp_url = self.server.url();
        let mail = ["--smtp-url", &smtp_url, "--mail-from", from, "--contact-to", "makers@troupe.example"];
        let asked = ["check", "--name-server", name_server];
        let (code, checks) = found(Program::command(self.folder.path(), &[&asked[..], &mail].concat()));
        is(&checks, "sender", state, words);
        assert_eq!(code, 0, "{checks:#}");
    }

    #[track_caller]
    fn finds_of(&self, zone: &Zone, state: &str, words: &str) {
        self.finds("hello@troupe.example", &NameServer::start(zone).address(), state, words);
    }
}

#[tokio::test]
async fn a_domain_that_has_everything_is_well() {
    let maker = Maker::new().await;
    let well = "troupe.example has SPF, DMARC and a place for replies; DKIM cannot be seen from here";
    maker.finds_of(&whole(), "ok", well);

    let host = and(without("troupe.example", &mx("mx.mail.example")), "troupe.example", a());
    maker.finds_of(&host, "ok", well);

    let alias = without("_dmarc.troupe.example", &txt(DMARC));
    let alias = and(alias, "_dmarc.troupe.example", cname("dmarc.mail.example"));
    maker.finds_of(&and(alias, "dmarc.mail.example", txt(DMARC)), "ok", well);
}

#[tokio::test]
async fn what_is_missing_is_told_with_a_record_to_add() {
    let maker = Maker::new().await;
    let (domain, dmarc) = ("troupe.example", "_dmarc.troupe.example");
    let no_spf = "no SPF: add TXT such as \"v=spf1 include:";
    maker.finds_of(&without(domain, &txt(SPF)), "note", no_spf);
    let no_dmarc = "no DMARC: add TXT such as \"v=DMARC1; p=none\" at _dmarc.troupe.example";
    maker.finds_of(&without(dmarc, &txt(DMARC)), "note", no_dmarc);
    let no_way = "Replies and bounces have nowhere to go: add MX such as";
    maker.finds_of(&without(domain, &mx("mx.mail.example")), "note", no_way);

    let bare = NameServer::start(&[(domain, txt("some-verification=123"))]);
    for words in [no_spf, no_dmarc, no_way, "DKIM cannot be seen"] {
        maker.finds("hello@troupe.example", &bare.address(), "note", words);
    }
}

#[tokio::test]
async fn what_contradicts_itself_or_forbids_mail_is_told() {
    let maker = Maker::new().await;
    let domain = "troupe.example";
    let two = and(whole(), domain, txt("v=spf1 mx -all"));
    maker.finds_of(&two, "note", "troupe.example has 2 SPF records, which receivers take for a mistake");
    let two = and(whole(), "_dmarc.troupe.example", txt("v=DMARC1; p=reject"));
    maker.finds_of(&two, "note", "_dmarc.troupe.example has 2 DMARC records, so that none counts");
    let nobody = and(without(domain, &txt(SPF)), domain, txt("v=spf1 -all"));
    maker.finds_of(&nobody, "note", "SPF of troupe.example lets nobody send");
    let closed = and(without(domain, &mx("mx.mail.example")), domain, mx("."));
    maker.finds_of(&closed, "note", "the MX of troupe.example says that it takes no mail");
}

#[tokio::test]
async fn a_domain_above_may_have_dmarc_and_whose_it_is_is_told() {
    let maker = Maker::new().await;
    let below = and(and(whole(), "news.mail.troupe.example", txt(SPF)), "news.mail.troupe.example", a());
    let name_server = NameServer::start(&below);
    let words = "news.mail.troupe.example has SPF, DMARC (of troupe.example) and a place for replies";
    maker.finds("hello@news.mail.troupe.example", &name_server.address(), "ok", words);

    let nobodys = and(without("_dmarc.troupe.example", &txt(DMARC)), "_dmarc.example", txt(DMARC));
    maker.finds_of(&nobodys, "note", "troupe.example has no DMARC");
}

#[tokio::test]
async fn a_domain_that_is_not_there_is_told() {
    let maker = Maker::new().await;
    let name_server = NameServer::start(&whole());
    let words = "DNS knows no trope.example, so mail from there is refused. Check `mail_from`.";
    maker.finds("hello@trope.example", &name_server.address(), "note", words);
}

#[tokio::test]
async fn a_domain_of_any_script_is_asked_for_in_its_ascii_form() {
    let maker = Maker::new().await;
    let name = "xn--mnchen-3ya.example";
    let dmarc = "_dmarc.xn--mnchen-3ya.example";
    let name_server = NameServer::start(&[(name, txt(SPF)), (name, a()), (dmarc, txt(DMARC))]);
    maker.finds("Troupe <hello@MÜNCHEN.example>", &name_server.address(), "ok", "xn--mnchen-3ya.example has SPF");
}

#[tokio::test]
async fn a_record_too_long_for_a_datagram_is_asked_for_over_tcp() {
    let maker = Maker::new().await;
    let networks = (0..200).map(|number| format!("ip4:192.0.2.{number}")).collect::<Vec<_>>().join(" ");
    let long = and(without("troupe.example", &txt(SPF)), "troupe.example", txt(&format!("v=spf1 {networks} ~all")));
    let name_server = NameServer::start(&long);
    maker.finds("hello@troupe.example", &name_server.address(), "ok", "has SPF, DMARC");
    assert_eq!(name_server.asked_over_tcp(), 1);
}

#[tokio::test]
async fn only_the_answer_of_the_server_to_the_question_counts() {
    let maker = Maker::new().await;
    let name_server = NameServer::start_as(Manner::Crowded, &whole());
    maker.finds("hello@troupe.example", &name_server.address(), "ok", "has SPF, DMARC");
}

#[tokio::test]
async fn a_question_that_got_lost_is_asked_again() {
    let maker = Maker::new().await;
    let name_server = NameServer::start_as(Manner::Forgetful, &whole());
    maker.finds("hello@troupe.example", &name_server.address(), "ok", "has SPF, DMARC");
}

#[tokio::test]
async fn where_nobody_answers_that_is_told_and_nothing_is_guessed() {
    let maker = Maker::new().await;
    for (manner, words) in [(Manner::Silent, "does not answer"), (Manner::Failing, "does not tell: SERVFAIL")] {
        let address = NameServer::start_as(manner, &whole()).address();
        let words = format!("DNS could not be asked: {address} {words}. troupe.example needs SPF, DMARC and DKIM");
        maker.finds("hello@troupe.example", &address, "note", &words);
    }
    let words = "DNS could not be asked: 127.0.0.1:1 cannot be reached";
    maker.finds("hello@troupe.example", "127.0.0.1:1", "note", words);
}

#[test]
fn a_name_server_has_to_be_an_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, said) = Program::run(Program::command(folder.path(), &["check", "--name-server", "dns.example"]));
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("it is not an address such as 9.9.9.9"), "{said}");
}

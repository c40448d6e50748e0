//! Letters that come back: the address in their envelope, and `porchlight bounce`.
//!
//! The samples are in `tests/service/bounces`. Those of Postfix and Exim were made by these programs, from letters of
//! ours. Those with `imitation` in their name were written after the documentation of a program, or of a format.

mod hostile;
mod maildir;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use porchlight::config::MailSettings;
use porchlight::domain::letters::BounceAddress;
use porchlight::domain::mail::{Mailbox, Relay};
use porchlight::mail::Mailer;
use serde_json::{Value, json};

use super::refusals::sender;
use super::{LETTER, LetterFixture, on_each_database};
use crate::harness::Program;
use crate::people::{command, json_of, run};

const BOUNCE_ADDRESS: &str = "bounces@troupe.example";

/// The tag in all samples.
const SAMPLE_TAG: &str = "0123456789abcdef0123456789abcdef";

/// What each sample leads to: a code that suppresses or is counted, or the reason why nothing changes.
const SAMPLES: [(&str, &str, &str); 20] = [
    ("exchange-imitation-unknown-mailbox", "suppressed", "5.1.10"),
    ("exim-delayed", "unchanged", "no-failure"),
    ("exim-full-mailbox", "counted", "4.2.2"),
    ("exim-spam-rejection", "unchanged", "no-failure"),
    // Exim gives no code that says more than that the delivery failed.
    ("exim-unknown-local-user", "unchanged", "no-failure"),
    ("exim-unknown-mailbox", "suppressed", "5.1.1"),
    ("gmail-imitation-unknown-mailbox", "suppressed", "5.1.1"),
    ("partly-delivered-imitation", "unchanged", "no-failure"),
    ("postfix-delayed", "unchanged", "no-failure"),
    ("postfix-full-mailbox", "counted", "4.2.2"),
    ("postfix-spam-rejection", "unchanged", "no-failure"),
    ("postfix-unknown-local-user", "suppressed", "5.1.1"),
    ("postfix-unknown-mailbox", "suppressed", "5.1.1"),
    ("qmail-imitation-queue-expired", "counted", "4.4.1"),
    ("qmail-imitation-remote-rejection", "suppressed", "5.1.1"),
    ("qmail-imitation-unknown-mailbox", "suppressed", "5.1.1"),
    ("read-receipt-imitation", "unchanged", "no-failure"),
    ("relayed-imitation", "unchanged", "no-failure"),
    ("ses-imitation-unknown-mailbox", "suppressed", "5.1.1"),
    ("vacation-imitation", "unchanged", "no-failure"),
];

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/bounces")
}

/// A sample about the letter whose envelope has this sender.
fn sample(name: &str, sender: &str) -> String {
    let text = std::fs::read_to_string(samples().join(format!("{name}.eml"))).expect("a sample");
    assert!(text.contains(SAMPLE_TAG), "{name}");
    text.replace(&format!("bounces+{SAMPLE_TAG}@troupe.example"), sender)
}

impl LetterFixture {
    /// Sends a letter that is returned to `BOUNCE_ADDRESS`; gives the sender in the envelope for each recipient.
    async fn send_tagged(&mut self, file: &str) -> BTreeMap<String, String> {
        let (code, output) = self.run(&["send", file, "--yes", "--bounce-address", BOUNCE_ADDRESS]);
        assert_eq!(code, 0, "{output}");
        let mails = self.server.mails().await;
        assert!(mails.iter().all(|mail| mail.header("from") == "Troupe <hello@troupe.example>"), "{mails:#?}");
        mails.into_iter().map(|mail| (mail.recipients[0].clone(), mail.sender)).collect()
    }

    fn bounce_command(&self, arguments: &[&str]) -> Command {
        let mut command = command(&self.service, &["bounce"]);
        command.args(arguments);
        command
    }

    /// Passes one mail to `porchlight bounce`, as a mail server does.
    fn bounce(&self, mail: &str, arguments: &[&str]) -> (i32, String) {
        let file = self.file("returned.eml", mail);
        let mut command = self.bounce_command(arguments);
        command.stdin(File::open(file).unwrap());
        Program::run(command)
    }

    fn bounce_files(&self, files: &[String]) -> Value {
        let files: Vec<_> = files.iter().map(String::as_str).collect();
        let output = Program::run_to_end(self.bounce_command(&["--json"]).args(files));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
    }
}

#[tokio::test]
async fn each_sample_leads_to_what_it_reports_and_once() {
    let names: BTreeSet<_> = SAMPLES.iter().map(|(name, ..)| format!("{name}.eml")).collect();
    let files = samples().read_dir().unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.collect::<BTreeSet<_>>(), names, "each sample is tested");
    on_each_database(async |fixture| {
        let person = |name: &str| format!("{name}@example.com");
        for (name, ..) in SAMPLES {
            fixture.download(&person(name), true).await;
        }
        let senders = fixture.send_tagged(&fixture.file("a.md", LETTER)).await;
        assert_eq!(senders.values().collect::<BTreeSet<_>>().len(), SAMPLES.len(), "each copy has a tag of its own");
        let files =
            SAMPLES.map(|(name, ..)| fixture.file(&format!("{name}.eml"), &sample(name, &senders[&person(name)])));

        let summary = fixture.bounce_files(&files);
        for ((name, result, detail), mail) in SAMPLES.iter().zip(summary["mails"].as_array().unwrap()) {
            let (email, status, reason) = match *result {
                "unchanged" => (Value::Null, Value::Null, json!(detail)),
                _ => (json!(person(name)), json!(detail), Value::Null),
            };
            assert_eq!(
                (&mail["result"], &mail["email"], &mail["status"], &mail["reason"]),
                (&json!(result), &email, &status, &reason),
                "{name}: {mail:#}"
            );
        }
        let count = |of: &str| SAMPLES.iter().filter(|(_, result, _)| *result == of).count();
        assert_eq!(fixture.service.database.count("suppressions").await, i64::try_from(count("suppressed")).unwrap());
        let status = fixture.status();
        assert_eq!(status["sent"], SAMPLES.len());
        assert_eq!(status["bounced"], count("suppressed") + count("counted"), "{status:#}");

        let before = fixture.service.database.everything().await;
        let again = fixture.bounce_files(&files);
        assert_eq!(again["unchanged"], SAMPLES.len(), "{again:#}");
        assert_eq!(fixture.service.database.everything().await, before);
    })
    .await;
}

#[tokio::test]
async fn a_returned_letter_suppresses_its_recipient_and_is_shown_everywhere() {
    on_each_database(async |fixture| {
        for name in ["ada", "gone"] {
            fixture.download(&format!("{name}@example.com"), true).await;
        }
        let senders = fixture.send_tagged(&fixture.file("a.md", LETTER)).await;
        let mail = sample("postfix-unknown-mailbox", &senders["gone@example.com"]);
        let (code, output) = fixture.bounce(&mail, &[]);
        assert_eq!(
            (code, output.as_str()),
            (0, "standard input: gone@example.com has no mailbox (5.1.1), so it is suppressed.\n")
        );

        let status = fixture.status();
        assert_eq!((&status["sent"], &status["bounced"]), (&json!(2), &json!(1)), "{status:#}");
        assert!(fixture.run(&["status"]).1.ends_with("0 skipped; 1 bounced\n"));
        assert!(fixture.run(&["list"]).1.contains("2 of 2 sent, 1 bounced  What"));
        let shown = json_of(&fixture.service, &["people", "show", "gone@example.com", "--json"]);
        assert_eq!((&shown["updates"], &shown["suppression"]["reason"]), (&json!(false), &json!("no-mailbox")));
        let letter = &shown["letters"][0];
        assert_eq!((&letter["state"], &letter["bounce"]["status"]), (&json!("sent"), &json!("5.1.1")), "{shown:#}");
        assert!(letter["bounce"]["at"].as_str().unwrap().starts_with("2026-11-15T12:"), "{shown:#}");
        let text = run(&fixture.service, &["people", "show", "gone@example.com"]).1;
        assert!(text.contains("letter “What is new in November”: bounced (5.1.1)"), "{text}");

        fixture.service.clock.advance(Duration::from_hours(31 * 24));
        let senders = fixture.send_tagged(&fixture.file("b.md", "# December\n\nMore.\n")).await;
        assert_eq!(senders.keys().collect::<Vec<_>>(), ["ada@example.com"]);

        assert_eq!(run(&fixture.service, &["people", "unsuppress", "gone@example.com"]).0, 0);
        let (code, output) = fixture.bounce(&mail, &[]);
        assert!(code == 0 && output.contains("recorded before"), "{output}");
        assert_eq!(fixture.service.database.count("suppressions").await, 0, "an old mail does not suppress again");

        assert_eq!(run(&fixture.service, &["people", "erase", "gone@example.com", "--yes"]).0, 0);
        let (code, output) = fixture.bounce(&mail, &[]);
        assert!(code == 0 && output.contains("belongs to no letter"), "{output}");
        let rest = format!("{:?}", fixture.service.database.everything().await);
        let tag = letter["bounce_tag"].as_str().unwrap();
        assert!(!rest.contains(tag) && !rest.contains("gone@"), "nothing of an erased person is left");
    })
    .await;
}

#[tokio::test]
async fn a_full_mailbox_is_counted_until_it_turns_out_to_be_gone() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let senders = fixture.send_tagged(&fixture.file("a.md", LETTER)).await;
        let returned = |name| sample(name, &senders["ada@example.com"]);
        let (code, output) = fixture.bounce(&returned("postfix-full-mailbox"), &[]);
        assert!(code == 0 && output.contains("ada@example.com did not arrive (4.2.2); counted"), "{output}");
        assert_eq!(
            (fixture.service.database.count("suppressions").await, fixture.status()["bounced"].clone()),
            (0, json!(1))
        );
        assert!(fixture.bounce(&returned("exim-full-mailbox"), &[]).1.contains("recorded before"));

        assert!(fixture.bounce(&returned("postfix-unknown-mailbox"), &[]).1.contains("so it is suppressed"));
        assert!(fixture.bounce(&returned("postfix-full-mailbox"), &[]).1.contains("recorded before"));
        assert_eq!(
            (fixture.service.database.count("suppressions").await, fixture.status()["bounced"].clone()),
            (1, json!(1))
        );
        let shown = json_of(&fixture.service, &["people", "show", "ada@example.com", "--json"]);
        assert_eq!(shown["letters"][0]["bounce"]["status"], "5.1.1");
    })
    .await;
}

#[tokio::test]
async fn the_recipient_is_named_by_the_mail_server_or_by_the_returned_letter() {
    on_each_database(async |fixture| {
        for name in ["ada", "bob", "cyd"] {
            fixture.download(&format!("{name}@example.com"), true).await;
        }
        let senders = fixture.send_tagged(&fixture.file("a.md", LETTER)).await;
        let nameless = sample("postfix-unknown-mailbox", "postmaster@troupe.example");
        assert!(fixture.bounce(&nameless, &[]).1.contains("no address with a tag"));
        assert!(fixture.bounce(&nameless, &["--recipient", "-odd one"]).1.contains("no address with a tag"));
        let (code, output) = fixture.bounce(&nameless, &["--recipient", &senders["ada@example.com"]]);
        assert!(code == 0 && output.contains("ada@example.com has no mailbox"), "{output}");

        // Postfix and others put a line of their own before the headers that they pass to a command.
        let path = "Return-Path: <postmaster@troupe.example>\nReceived";
        let with_path = nameless.replace(path, &format!("Return-Path: <{}>\nReceived", senders["bob@example.com"]));
        let (code, output) = fixture.bounce(&format!("From MAILER-DAEMON  Mon Nov 16 08:00:00 2026\n{with_path}"), &[]);
        assert!(code == 0 && output.contains("bob@example.com has no mailbox"), "{output}");

        let delivered = format!("Delivered-To: {}\r\n{}", senders["cyd@example.com"], nameless.replace('\n', "\r\n"));
        assert!(fixture.bounce(&delivered, &[]).1.contains("cyd@example.com has no mailbox"));
    })
    .await;
}

#[tokio::test]
async fn a_retried_copy_keeps_its_tag() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let mut sender = sender(fixture).await;
        let sender_mailbox = Mailbox::parse("hello@troupe.example").unwrap();
        sender.mailer = Mailer::from_settings(&MailSettings {
            relay: Relay::parse(&fixture.server.url()).unwrap(),
            from: sender_mailbox.clone(),
            contact_to: sender_mailbox,
            bounce_address: Some(BounceAddress::parse(BOUNCE_ADDRESS).unwrap()),
            desk_email: None,
            dkim: None,
        })
        .unwrap();
        fixture.server.command("reply recipient 451 4.3.0 later").await;
        sender.step().await.unwrap();
        let tags = fixture.service.database.texts("SELECT bounce_tag FROM letter_recipients").await;
        fixture.server.command("accept").await;
        fixture.service.clock.advance(Duration::from_mins(1));
        sender.step().await.unwrap();
        assert_eq!(fixture.server.next_mail().await.sender, format!("bounces+{}@troupe.example", tags[0]));
        assert_eq!(fixture.service.database.texts("SELECT bounce_tag FROM letter_recipients").await, tags);
        sender.close().await;
        sender.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_test_copy_has_a_tag_that_belongs_to_nobody_and_without_the_setting_there_is_none() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let file = fixture.file("a.md", LETTER);
        let test = ["test", &file, "--to", "me@troupe.example"];
        assert_eq!(fixture.run(&[&test[..], &["--bounce-address", BOUNCE_ADDRESS]].concat()).0, 0);
        let mail = fixture.server.next_mail().await;
        assert!(
            mail.sender.starts_with("bounces+") && mail.sender.len() == "bounces+@troupe.example".len() + 32,
            "{mail:?}"
        );
        let (code, output) = fixture.bounce(&sample("postfix-unknown-mailbox", &mail.sender), &[]);
        assert!(code == 0 && output.contains("belongs to no letter"), "{output}");

        assert_eq!(fixture.run(&test).0, 0);
        assert_eq!(fixture.send(&file).0, 0);
        let senders: Vec<_> = fixture.server.mails().await.into_iter().map(|mail| mail.sender).collect();
        assert_eq!(senders, ["hello@troupe.example"; 2]);
        assert_eq!(fixture.service.database.count("letter_recipients WHERE bounce_tag IS NOT NULL").await, 0);
    })
    .await;
}

#[tokio::test]
async fn an_address_without_room_for_a_tag_is_rejected_with_a_sentence() {
    on_each_database(async |fixture| {
        let file = fixture.file("a.md", LETTER);
        let long = format!("{}@troupe.example", "b".repeat(32));
        for (address, words) in
            [("bounces+all@troupe.example", "must not contain a +"), (&long, "more than 31 characters")]
        {
            let (code, output) = fixture.run(&["send", &file, "--yes", "--bounce-address", address]);
            assert!(code == 2 && output.contains("`bounce_address`") && output.contains(words), "{output}");
        }
    })
    .await;
}

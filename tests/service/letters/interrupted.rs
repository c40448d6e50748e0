//! Senders that are killed, and senders that share the work.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use porchlight::actions::compose_copy;
use serde_json::json;

use super::refusals::sender;
use super::{LETTER, LetterFixture, on_each_database};
use crate::harness::{Database, Program, each_database};

/// Signs up `count` people who opt in, and as many who do not.
async fn people(fixture: &LetterFixture, count: usize) -> BTreeSet<String> {
    let mut asked = BTreeSet::new();
    for number in 0..count {
        fixture.download(&format!("no{number}@example.com"), false).await;
        fixture.download(&format!("yes{number}@example.com"), true).await;
        asked.insert(format!("yes{number}@example.com"));
    }
    asked
}

/// Kills the sender each time a few more mails have arrived, then runs one to the end. Nobody may get two mails,
/// only people who opted in may get one, and the counts have to agree with what arrived.
async fn kill_and_count(database: Database, count: usize, kills: usize) {
    let mut fixture = LetterFixture::open(database).await;
    let asked = people(&fixture, count).await;
    let file = fixture.file("a.md", LETTER);
    let mut arrived: BTreeMap<String, usize> = BTreeMap::new();
    for kill in 0..kills {
        let mut command = fixture.command(&["send", &file, "--yes"]);
        let mut sending = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        for _ in 0..=kill % 7 {
            let mail = fixture.server.next_mail().await;
            *arrived.entry(mail.recipients[0].clone()).or_default() += 1;
        }
        sending.kill().unwrap();
        Program::wait(sending, "the end of a killed command");
    }
    let (code, output) = fixture.send(&file);
    assert_eq!(code, 0, "{output}");
    for to in fixture.recipients().await {
        *arrived.entry(to).or_default() += 1;
    }
    let doubled: Vec<_> = arrived.iter().filter(|(_, mails)| **mails > 1).collect();
    assert!(doubled.is_empty(), "these got two: {doubled:?}");
    assert!(arrived.keys().all(|to| asked.contains(to)), "somebody got one who had not asked");

    let status = fixture.status();
    let [recipients, sent, uncertain] = ["recipients", "sent", "uncertain"].map(|name| status[name].as_u64().unwrap());
    assert_eq!(recipients, asked.len() as u64, "{status:#}");
    assert_eq!((sent + uncertain, &status["waiting"]), (recipients, &json!(0)), "{status:#}");
    assert!(uncertain <= kills as u64, "one kill leaves one in doubt at most: {status:#}");
    let mails = arrived.len() as u64;
    assert!(sent <= mails && mails <= sent + uncertain, "{mails} arrived: {status:#}");
    fixture.counts_agree().await;
    fixture.service.stop().await;
}

#[tokio::test]
async fn a_sender_killed_repeatedly_mails_nobody_twice() {
    for database in each_database().await {
        kill_and_count(database, 60, 12).await;
    }
}

#[tokio::test]
async fn claiming_after_sending_would_double() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let careless = sender(fixture).await;
        let ada = porchlight::domain::mail::EmailAddress::parse("ada@example.com").unwrap();
        let to = porchlight::site::MailRecipient {
            opted_in: "2026-11-15".to_owned(),
            through: "the site",
            url: "https://troupe.example/".to_owned(),
        };
        let mut rendered = careless.templates.letter(&careless.letter, &to, false).unwrap();
        rendered.subject = "Too early".to_owned();
        let now = fixture.service.clock.now();
        let mail = compose_copy(&careless.mailer, &rendered, &ada, &to, None, now).unwrap();
        careless.mailer.connect().await.unwrap().send(&mail).await.unwrap();
        // It dies here, before it has leased a recipient.
        careless.store.close().await;
        assert_eq!(fixture.send(&fixture.file("a.md", LETTER)).0, 0);
        assert_eq!(fixture.recipients().await, ["ada@example.com", "ada@example.com"]);
    })
    .await;
}

#[tokio::test]
async fn several_senders_of_one_file_share_the_work() {
    on_each_database(async |fixture| {
        let asked = people(fixture, 40).await;
        let file = fixture.file("a.md", LETTER);
        let senders: Vec<_> = (0..3)
            .map(|_| {
                let mut command = fixture.command(&["send", &file, "--yes"]);
                command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for sender in senders {
            let output = Program::wait(sender, "the end of a sender");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let recipients = fixture.recipients().await;
        assert_eq!(recipients.len(), 40);
        assert_eq!(recipients.into_iter().collect::<BTreeSet<_>>(), asked);
        assert_eq!(fixture.status()["sent"], 40);
    })
    .await;
}

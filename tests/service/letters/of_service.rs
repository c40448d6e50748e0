//! Letters that the service sends: on whichever instance, after a restart, and not once somebody has stopped them.

use std::collections::BTreeSet;
use std::time::Duration;

use porchlight::actions::{LetterStep, send_by_service, stop_letter};
use porchlight::config::RawSettings;
use porchlight::domain::letters::{Letter, LetterRun};
use porchlight::store::Store;
use serde_json::json;

use super::refusals::sender;
use super::{BASE_URL, LETTER, LetterFixture, on_each_database};
use crate::harness::{Database, MailServer, Service, each_migrated_database, wait_until};

/// A service that sends letters, and a store of the test.
async fn open(database: Database, rate: &str) -> (LetterFixture, Store) {
    let server = MailServer::start().await;
    let store = database.store();
    let service = Service::start(settings(&server, rate), database).await;
    (LetterFixture { service, server }, store)
}

fn settings(server: &MailServer, rate: &str) -> RawSettings {
    RawSettings {
        base_url: Some(BASE_URL.to_owned()),
        download_url: Some("https://images.example/Troupe.dmg".to_owned()),
        smtp_url: Some(server.url()),
        mail_from: Some("Troupe <hello@troupe.example>".to_owned()),
        contact_to: Some("makers@troupe.example".to_owned()),
        postal_address: Some("1 Lamp Street, Oldtown".to_owned()),
        letter_rate: Some(rate.to_owned()),
        ..RawSettings::default()
    }
}

async fn people(fixture: &LetterFixture, count: usize) -> Vec<String> {
    for number in 0..count {
        fixture.download(&format!("p{number}@example.com"), true).await;
    }
    let mut people: Vec<_> = (0..count).map(|number| format!("p{number}@example.com")).collect();
    people.sort();
    people
}

/// Lets time pass until this many copies were sent in all.
async fn sent(fixture: &LetterFixture, store: &Store, letter: &Letter, copies: u64) {
    wait_until("copies are sent", async || {
        fixture.service.clock.advance(Duration::from_millis(20));
        let started = store.letter(&letter.id).await.expect("an answer");
        started.is_some_and(|started| started.counts.sent >= copies)
    })
    .await;
}

#[tokio::test]
async fn a_letter_goes_on_by_itself_until_everybody_has_it() {
    for database in each_migrated_database().await {
        let (mut fixture, store) = open(database, "1000").await;
        let asked = people(&fixture, 30).await;
        let letter = Letter::parse(LETTER).expect("a letter");
        let now = fixture.service.clock.now();
        assert!(send_by_service(&store, &letter, LetterRun::Command, now).await.expect("an answer"));
        assert!(
            !send_by_service(&store, &letter, LetterRun::Command, now).await.expect("an answer"),
            "it is being sent"
        );
        sent(&fixture, &store, &letter, 10).await;
        // A restart of the only instance.
        let LetterFixture { service, server } = fixture;
        let database = service.database.clone();
        service.stop().await;
        let service = Service::start(settings(&server, "1000"), database).await;
        fixture = LetterFixture { service, server };
        sent(&fixture, &store, &letter, 30).await;
        assert_eq!(fixture.recipients().await, asked, "each one, once");
        wait_until("it is complete", async || {
            store.letter_run(&letter.id).await.expect("an answer") == Some((LetterRun::Command, None))
        })
        .await;
        fixture.counts_agree().await;
        assert_eq!(fixture.status()["run"], "command");
        store.close().await;
        fixture.service.stop().await;
    }
}

#[tokio::test]
async fn a_letter_that_was_stopped_stays_stopped_for_the_command_too() {
    for database in each_migrated_database().await {
        let (mut fixture, store) = open(database, "1000").await;
        people(&fixture, 20).await;
        let (file, letter) = (fixture.file("a.md", LETTER), Letter::parse(LETTER).expect("a letter"));
        let now = fixture.service.clock.now();
        assert!(!stop_letter(&store, &letter.id).await.expect("an answer"), "nobody has begun it");
        send_by_service(&store, &letter, LetterRun::Command, now).await.expect("an answer");
        let (code, said) = fixture.send(&file);
        assert!(code == 1 && said.contains("The service sends this letter."), "{said}");
        sent(&fixture, &store, &letter, 5).await;
        assert!(stop_letter(&store, &letter.id).await.expect("an answer"));
        let arrived = fixture.recipients().await.len();
        fixture.service.clock.advance(Duration::from_mins(1));
        let (code, said) = fixture.send(&file);
        assert!(code == 1 && said.contains("was stopped at the desk") && said.contains("`--go-on`"), "{said}");
        let more = fixture.recipients().await.len();
        assert!(more <= 1, "the copy that was being sent: {more}");
        let (code, said) = fixture.run(&["send", &file, "--yes", "--go-on"]);
        assert_eq!(code, 0, "{said}");
        let rest: BTreeSet<_> = fixture.recipients().await.into_iter().collect();
        assert_eq!(arrived + more + rest.len(), 20, "{said}");
        store.close().await;
        fixture.service.stop().await;
    }
}

#[tokio::test]
async fn a_sender_claims_nobody_once_the_letter_is_stopped_or_somebody_elses() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let mut sender = sender(fixture).await;
        let id = sender.letter.id;
        for (from, to) in [(LetterRun::Command, LetterRun::Stopped), (LetterRun::Stopped, LetterRun::Service)] {
            assert!(sender.store.change_letter_run(&id, from, to, None).await.expect("an answer"));
            let step = sender.step().await.expect("a step");
            assert!(matches!(step, LetterStep::NotOurs(run) if run == to), "{step:?}");
        }
        assert_eq!(fixture.recipients().await, [""; 0]);
        sender.terms.run = LetterRun::Service;
        assert!(matches!(sender.step().await.expect("a step"), LetterStep::Finished));
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
        sender.close().await;
        sender.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn all_senders_together_keep_to_the_rate() {
    for database in each_migrated_database().await {
        let (mut fixture, store) = open(database, "2").await;
        people(&fixture, 12).await;
        let letter = Letter::parse(LETTER).expect("a letter");
        let other = Service::start(settings(&fixture.server, "2"), fixture.service.database.clone()).await;
        send_by_service(&store, &letter, LetterRun::Command, fixture.service.clock.now()).await.expect("an answer");
        for copies in 1..=12 {
            let mail = fixture.server.next_mail().await;
            assert!(mail.recipients[0].ends_with("@example.com"));
            // Until the next turn, which is half a second later, nobody sends another one.
            assert_eq!(fixture.recipients().await, [""; 0], "after {copies}");
            for clock in [&fixture.service.clock, &other.clock] {
                clock.advance(Duration::from_millis(500));
            }
        }
        other.stop().await;
        store.close().await;
        fixture.service.stop().await;
    }
}

#[tokio::test]
async fn a_letter_whose_last_recipients_are_deferred_holds_up_no_other() {
    for database in each_migrated_database().await {
        let (mut fixture, store) = open(database, "1000").await;
        let asked = people(&fixture, 20).await;
        let mut letters = ["# One\n\nHello", "# Two\n\nHello"].map(|text| Letter::parse(text).expect("a letter"));
        letters.sort_by_key(|letter| letter.id.hex());
        let [first, second] = letters;
        send_by_service(&store, &first, LetterRun::Command, fixture.service.clock.now()).await.expect("an answer");
        sent(&fixture, &store, &first, 3).await;
        assert!(stop_letter(&store, &first.id).await.expect("an answer"));
        // As if the mail server had deferred the others until tomorrow.
        let defer = "UPDATE letter_recipients SET at = at + 100000000 WHERE state = 'waiting'";
        fixture.service.database.execute(defer).await;
        let (from, to) = (LetterRun::Stopped, LetterRun::Service);
        assert!(store.change_letter_run(&first.id, from, to, None).await.expect("an answer"));
        send_by_service(&store, &second, LetterRun::Command, fixture.service.clock.now()).await.expect("an answer");
        wait_until("the second one is sent", async || {
            fixture.service.clock.advance(Duration::from_millis(20));
            store.letter_run(&second.id).await.expect("an answer") == Some((LetterRun::Command, None))
        })
        .await;
        assert_eq!(fixture.recipients().await, asked, "each one, once");
        let waiting = store.letter(&first.id).await.expect("an answer").expect("a letter");
        assert_eq!(waiting.run, LetterRun::Service, "it goes on tomorrow");
        store.close().await;
        fixture.service.stop().await;
    }
}

#[tokio::test]
async fn a_recipient_who_is_always_deferred_is_given_up_after_five_days() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        fixture.server.command("reply recipient 450 4.2.2 full").await;
        let mut sender = sender(fixture).await;
        let (begun, mut deferrals) = (sender.clock.now(), 0);
        loop {
            match sender.step().await.expect("a step") {
                LetterStep::Deferred => deferrals += 1,
                LetterStep::WaitUntil(time) => sender.clock.advance(sender.clock.now().until(time)),
                LetterStep::Finished => break,
                other => panic!("{other:?}"),
            }
        }
        let days = begun.until(sender.clock.now()).as_secs() / (24 * 60 * 60);
        assert_eq!((deferrals, days), (8, 5));
        let status = fixture.status();
        assert_eq!((&status["refused"], &status["waiting"]), (&json!(1), &json!(0)), "{status:#}");
        fixture.server.command("accept").await;
        sender.close().await;
        sender.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn who_is_skipped_takes_no_turn() {
    on_each_database(async |fixture| {
        for number in 0..5 {
            fixture.download(&format!("p{number}@example.com"), true).await;
        }
        fixture.run(&["send", &fixture.file("a.md", "# One\n\nHello"), "--yes"]);
        assert_eq!(fixture.recipients().await.len(), 5);
        fixture.download("new@example.com", true).await;
        fixture.download("newer@example.com", true).await;
        let mut sender = sender(fixture).await;
        sender.terms.interval = Some(Duration::from_secs(1));
        sender.clock.advance(Duration::from_secs(1));
        let mut skipped = 0;
        loop {
            match sender.step().await.expect("a step") {
                LetterStep::Finished => skipped += 1,
                LetterStep::NotYet(_) => break,
                other => panic!("{other:?}"),
            }
        }
        assert!((1..=6).contains(&skipped), "{skipped}");
        assert_eq!(fixture.recipients().await.len(), 1, "one turn, one mail");
        sender.clock.advance(Duration::from_secs(1));
        while !matches!(sender.step().await.expect("a step"), LetterStep::Complete) {}
        assert_eq!(fixture.recipients().await.len(), 1, "and the other one in the next turn");
        sender.close().await;
        sender.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_relay_that_refuses_everything_stops_the_letter_with_a_reason() {
    for database in each_migrated_database().await {
        let (mut fixture, store) = open(database, "1000").await;
        people(&fixture, 8).await;
        fixture.server.command("reply recipient 554 5.7.1 blocked").await;
        let letter = Letter::parse(LETTER).expect("a letter");
        send_by_service(&store, &letter, LetterRun::Command, fixture.service.clock.now()).await.expect("an answer");
        wait_until("it is stopped", async || {
            fixture.service.clock.advance(Duration::from_millis(20));
            store.letter_run(&letter.id).await.expect("an answer").is_some_and(|(run, _)| run == LetterRun::Stopped)
        })
        .await;
        let status = fixture.status();
        assert_eq!((&status["run"], &status["waiting"]), (&json!("stopped"), &json!(8)), "{status:#}");
        assert!(status["stop_reason"].as_str().expect("a reason").contains("5.7.1 blocked"), "{status:#}");
        let (code, said) = fixture.run(&["send", "--yes"]);
        assert!(code == 1 && said.contains("5.7.1 blocked") && said.contains("`--go-on`"), "{said}");
        fixture.server.command("accept").await;
        assert!(
            send_by_service(&store, &letter, LetterRun::Stopped, fixture.service.clock.now()).await.expect("an answer")
        );
        sent(&fixture, &store, &letter, 8).await;
        store.close().await;
        fixture.service.stop().await;
    }
}

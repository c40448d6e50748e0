//! What the mail server may say to a letter.

use std::time::Duration;

use porchlight::actions::{LetterSender, LetterStep};
use porchlight::domain::base_url::BaseUrl;
use porchlight::domain::letter::Letter;
use porchlight::domain::mailbox::Mailbox;
use porchlight::domain::relay::Relay;
use porchlight::mail::Mailer;
use porchlight::site::{Content, LetterTemplate};
use porchlight::store::{Database as StoredIn, Store};
use serde_json::json;

use super::{Desk, LETTER, on_each_database};

/// The sender itself, with the clock of the service, to be driven by hand.
pub(super) async fn sender(desk: &Desk) -> LetterSender {
    let store = Store::open(&StoredIn::parse(desk.service.database.url()).unwrap()).unwrap();
    let from = Mailbox::parse("hello@troupe.example").unwrap();
    let mailer = Mailer::new(Relay::parse(&desk.server.url()).unwrap(), &from).unwrap();
    let base_url = BaseUrl::parse(desk.service.base_url()).unwrap();
    let letter_template = LetterTemplate::read(&Content::default(), base_url.clone(), "1 Lamp Street").unwrap();
    let letter = Letter::parse(LETTER).unwrap();
    let to = store.recipients().await.unwrap();
    let sender = LetterSender::new(store, mailer, letter_template, base_url, letter, desk.service.clock.clone());
    sender.start(&to).await.unwrap();
    sender
}

#[tokio::test]
async fn a_mailbox_that_is_not_there_is_never_mailed_again() {
    on_each_database(async |desk| {
        for name in ["ada", "gone", "full"] {
            desk.download(&format!("{name}@example.com"), true).await;
        }
        desk.server.command("reject gone 550 5.1.1 no such user").await;
        desk.server.command("reject full 552 5.2.2 over quota").await;
        let (code, said) = desk.send(&desk.file("a.md", LETTER));
        assert_eq!(code, 0, "{said}");
        assert_eq!(desk.recipients().await, ["ada@example.com"]);
        let status = desk.status();
        assert_eq!((&status["sent"], &status["refused"]), (&json!(1), &json!(2)), "{status:#}");
        assert_eq!(desk.service.database.count("suppressions").await, 1, "a full mailbox may be emptied");

        desk.server.command("accept").await;
        desk.download("gone@example.com", true).await;
        desk.send(&desk.file("b.md", "# Another\n\nMore.\n"));
        assert_eq!(desk.recipients().await, ["full@example.com"], "no public request undoes a suppression");
    })
    .await;
}

#[tokio::test]
async fn five_refusals_in_a_row_stop_the_run() {
    on_each_database(async |desk| {
        for number in 0..9 {
            desk.download(&format!("p{number}@example.com"), true).await;
        }
        desk.server.command("reply recipient 554 5.7.1 we do not like you").await;
        let file = desk.file("a.md", LETTER);
        let (code, said) = desk.send(&file);
        assert_eq!(code, 1);
        assert!(said.contains("rejected 5 letters in a row") && said.contains("4 recipients are waiting"), "{said}");
        let status = desk.status();
        assert_eq!((&status["refused"], &status["waiting"]), (&json!(5), &json!(4)), "{status:#}");
        desk.server.command("accept").await;
        assert_eq!(desk.send(&file).0, 0);
        assert_eq!(desk.recipients().await.len(), 4);
    })
    .await;
}

#[tokio::test]
async fn a_temporary_refusal_is_tried_again_later() {
    on_each_database(async |desk| {
        desk.download("ada@example.com", true).await;
        let mut sender = sender(desk).await;
        for stage in ["recipient", "content"] {
            desk.server.command(&format!("reply {stage} 451 4.7.1 greylisted")).await;
            assert!(matches!(sender.step().await.unwrap(), LetterStep::Deferred));
            assert!(matches!(sender.step().await.unwrap(), LetterStep::WaitUntil(_)));
            assert_eq!(desk.service.database.count("letter_months").await, 0);
            desk.service.clock.advance(Duration::from_mins(1));
        }
        desk.server.command("accept").await;
        assert!(matches!(sender.step().await.unwrap(), LetterStep::Finished));
        assert!(matches!(sender.step().await.unwrap(), LetterStep::Complete));
        assert_eq!(desk.recipients().await, ["ada@example.com"]);
        assert_eq!(desk.status()["sent"], 1);
        sender.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_letter_of_which_nobody_knows_is_uncertain_and_never_sent_again_by_itself() {
    on_each_database(async |desk| {
        desk.download("ada@example.com", true).await;
        let file = desk.file("a.md", LETTER);
        desk.server.command("drop answer").await;
        let (code, said) = desk.send(&file);
        assert_eq!(code, 0, "{said}");
        assert_eq!(desk.status()["uncertain"], 1);
        assert_eq!(desk.recipients().await, ["ada@example.com"], "it had arrived after all");
        desk.server.command("accept").await;
        desk.send(&file);
        desk.send(&desk.file("b.md", "# Another\n\nMore.\n"));
        assert!(desk.recipients().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_suppressed_person_is_skipped_at_the_last_moment() {
    on_each_database(async |desk| {
        desk.download("ada@example.com", true).await;
        let mut sender = sender(desk).await;
        let ada = porchlight::domain::email::EmailAddress::parse("ADA@example.com").unwrap();
        let why = porchlight::domain::suppression::SuppressionReason::Makers;
        sender.store.suppress(&ada, why, desk.service.clock.now()).await.unwrap();
        while !matches!(sender.step().await.unwrap(), LetterStep::Complete) {}
        assert!(desk.recipients().await.is_empty());
        assert_eq!(desk.status()["skipped"], 1);
        sender.store.close().await;
    })
    .await;
}

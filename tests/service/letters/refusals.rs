//! Replies of the mail server that reject a letter.

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

use super::{LETTER, LetterFixture, on_each_database};

/// A sender with the clock of the service, whose steps the test runs.
pub(super) async fn sender(fixture: &LetterFixture) -> LetterSender {
    let store = Store::open(&StoredIn::parse(fixture.service.database.url()).unwrap()).unwrap();
    let from = Mailbox::parse("hello@troupe.example").unwrap();
    let mailer = Mailer::new(Relay::parse(&fixture.server.url()).unwrap(), &from).unwrap();
    let base_url = BaseUrl::parse(fixture.service.base_url()).unwrap();
    let letter_template = LetterTemplate::read(&Content::default(), base_url.clone(), "1 Lamp Street").unwrap();
    let letter = Letter::parse(LETTER).unwrap();
    let to = store.recipients().await.unwrap();
    let sender = LetterSender::new(store, mailer, letter_template, base_url, letter, fixture.service.clock.clone());
    sender.start(&to).await.unwrap();
    sender
}

#[tokio::test]
async fn an_unknown_mailbox_is_never_mailed_again() {
    on_each_database(async |fixture| {
        for name in ["ada", "gone", "full"] {
            fixture.download(&format!("{name}@example.com"), true).await;
        }
        fixture.server.command("reject gone 550 5.1.1 no such user").await;
        fixture.server.command("reject full 552 5.2.2 over quota").await;
        let (code, output) = fixture.send(&fixture.file("a.md", LETTER));
        assert_eq!(code, 0, "{output}");
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
        let status = fixture.status();
        assert_eq!((&status["sent"], &status["refused"]), (&json!(1), &json!(2)), "{status:#}");
        assert_eq!(fixture.service.database.count("suppressions").await, 1, "a full mailbox may be emptied");

        fixture.server.command("accept").await;
        fixture.download("gone@example.com", true).await;
        fixture.send(&fixture.file("b.md", "# Another\n\nMore.\n"));
        assert_eq!(fixture.recipients().await, ["full@example.com"], "no public request undoes a suppression");
    })
    .await;
}

#[tokio::test]
async fn five_refusals_in_a_row_stop_the_run() {
    on_each_database(async |fixture| {
        for number in 0..9 {
            fixture.download(&format!("p{number}@example.com"), true).await;
        }
        fixture.server.command("reply recipient 554 5.7.1 we do not like you").await;
        let file = fixture.file("a.md", LETTER);
        let (code, output) = fixture.send(&file);
        assert_eq!(code, 1);
        assert!(
            output.contains("rejected 5 letters in a row") && output.contains("4 recipients have not been sent to yet"),
            "{output}"
        );
        let status = fixture.status();
        assert_eq!((&status["refused"], &status["waiting"]), (&json!(5), &json!(4)), "{status:#}");
        fixture.server.command("accept").await;
        assert_eq!(fixture.send(&file).0, 0);
        assert_eq!(fixture.recipients().await.len(), 4);
    })
    .await;
}

#[tokio::test]
async fn a_temporary_refusal_is_tried_again_later() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let mut sender = sender(fixture).await;
        for stage in ["recipient", "content"] {
            fixture.server.command(&format!("reply {stage} 451 4.7.1 greylisted")).await;
            assert!(matches!(sender.step().await.unwrap(), LetterStep::Deferred));
            assert!(matches!(sender.step().await.unwrap(), LetterStep::WaitUntil(_)));
            assert_eq!(fixture.service.database.count("letter_months").await, 0);
            fixture.service.clock.advance(Duration::from_mins(1));
        }
        fixture.server.command("accept").await;
        assert!(matches!(sender.step().await.unwrap(), LetterStep::Finished));
        assert!(matches!(sender.step().await.unwrap(), LetterStep::Complete));
        assert_eq!(fixture.recipients().await, ["ada@example.com"]);
        assert_eq!(fixture.status()["sent"], 1);
        sender.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_letter_with_an_unknown_outcome_is_uncertain_and_not_retried() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let file = fixture.file("a.md", LETTER);
        fixture.server.command("drop answer").await;
        let (code, output) = fixture.send(&file);
        assert_eq!(code, 0, "{output}");
        assert_eq!(fixture.status()["uncertain"], 1);
        assert_eq!(fixture.recipients().await, ["ada@example.com"], "it had arrived after all");
        fixture.server.command("accept").await;
        fixture.send(&file);
        fixture.send(&fixture.file("b.md", "# Another\n\nMore.\n"));
        assert!(fixture.recipients().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_suppressed_person_is_skipped_at_the_last_moment() {
    on_each_database(async |fixture| {
        fixture.download("ada@example.com", true).await;
        let mut sender = sender(fixture).await;
        let ada = porchlight::domain::email::EmailAddress::parse("ADA@example.com").unwrap();
        let why = porchlight::domain::suppression::SuppressionReason::Makers;
        sender.store.suppress(&ada, why, fixture.service.clock.now()).await.unwrap();
        while !matches!(sender.step().await.unwrap(), LetterStep::Complete) {}
        assert!(fixture.recipients().await.is_empty());
        assert_eq!(fixture.status()["skipped"], 1);
        let reasons = fixture.service.database.texts("SELECT trouble FROM letter_recipients").await;
        assert_eq!(reasons, ["suppressed"]);
        assert!(fixture.service.database.texts("SELECT month FROM letter_months").await.is_empty());
        sender.store.close().await;
    })
    .await;
}

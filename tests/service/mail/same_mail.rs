//! The messages of a mail that may have arrived stay together under its Message-ID, whatever happens.

use std::time::Duration;

use porchlight::mail::SendFailure;

use super::{MailFixture, message, messages_in, on_each_database};
use crate::people::run;

/// Sends a digest of seven messages that arrives, while the mail server's reply is lost.
async fn send_uncertain_digest(fixture: &mut MailFixture) -> String {
    fixture.write_many(7).await;
    fixture.server.command("drop answer").await;
    assert!(matches!(fixture.failed_step().await, SendFailure::Uncertain(_)));
    fixture.server.command("accept").await;
    let [first] = fixture.server.mails().await.try_into().expect("one mail");
    assert_eq!(messages_in(&first).len(), 7);
    first.header("message-id").to_owned()
}

async fn reference_of(fixture: &MailFixture, text: &str) -> String {
    let ids = fixture.service.database.texts(&format!("SELECT id FROM messages WHERE body = '{text}'")).await;
    ids[0][ids[0].len() - 8..].to_owned()
}

async fn arrives_again(fixture: &mut MailFixture, message_id: &str) {
    fixture.run().await;
    let [again] = fixture.server.mails().await.try_into().expect("one mail");
    assert_eq!(again.header("message-id"), message_id);
    assert_eq!(messages_in(&again), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(fixture.states().await, ["sent"; 7]);
}

#[tokio::test]
async fn a_retry_of_one_message_retries_its_whole_mail() {
    for has_failed in [false, true] {
        on_each_database(async |fixture| {
            let message_id = send_uncertain_digest(fixture).await;
            if has_failed {
                fixture.service.database.execute("UPDATE outbox SET state = 'failed'").await;
            }
            let reference = reference_of(fixture, "Number 4.").await;
            let (code, output) = run(&fixture.service, &["inbox", "retry", &reference]);
            assert!(code == 0 && output.contains("7 messages will be mailed"), "{output}");
            arrives_again(fixture, &message_id).await;
        })
        .await;
    }
}

#[tokio::test]
async fn without_a_discarded_message_the_rest_goes_in_another_mail() {
    on_each_database(async |fixture| {
        let message_id = send_uncertain_digest(fixture).await;
        let reference = reference_of(fixture, "Number 4.").await;
        let (code, output) = run(&fixture.service, &["inbox", "discard", &reference, "--yes"]);
        assert!(code == 0 && output.contains("1 message was deleted"), "{output}");
        run(&fixture.service, &["inbox", "retry", "--all"]);
        fixture.run().await;
        let [again] = fixture.server.mails().await.try_into().expect("one mail");
        assert_ne!(again.header("message-id"), message_id);
        assert_eq!(messages_in(&again), [1, 2, 3, 5, 6, 7]);
    })
    .await;
}

#[tokio::test]
async fn an_outage_before_the_repetition_does_not_change_the_mail() {
    on_each_database(async |fixture| {
        let message_id = send_uncertain_digest(fixture).await;
        fixture.server.command("stop-listening").await;
        fixture.advance_to_next_try().await;
        assert!(matches!(fixture.failed_step().await, SendFailure::Unavailable(_)));
        fixture.server.command("listen-again").await;
        fixture.advance_to_next_try().await;
        arrives_again(fixture, &message_id).await;
    })
    .await;
}

#[tokio::test]
async fn messages_of_one_mail_are_given_up_together() {
    on_each_database(async |fixture| {
        // The first message was tried alone six days ago.
        fixture.server.command("stop-listening").await;
        fixture.write(&message(1)).await;
        fixture.failed_step().await;
        fixture.server.command("listen-again").await;
        fixture.service.clock.advance(Duration::from_hours(6 * 24));
        for number in 2..=7 {
            fixture.write(&message(number)).await;
        }
        fixture.server.command("drop answer").await;
        assert!(matches!(fixture.failed_step().await, SendFailure::Uncertain(_)));
        let [first] = fixture.server.mails().await.try_into().expect("one mail");
        fixture.server.command("accept").await;
        fixture.server.command("stop-listening").await;
        fixture.service.clock.advance(Duration::from_hours(2 * 24));
        assert!(matches!(fixture.failed_step().await, SendFailure::Unavailable(_)));
        assert_eq!(fixture.states().await, ["waiting"; 7]);
        fixture.server.command("listen-again").await;
        fixture.service.clock.advance(Duration::from_hours(3));
        arrives_again(fixture, first.header("message-id")).await;
    })
    .await;
}

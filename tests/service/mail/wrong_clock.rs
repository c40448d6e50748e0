//! The clock was ahead for a while, and was set back: nothing waits for the time that it showed.

use std::time::Duration;

use porchlight::actions::{OutboxSender, SendStep};
use porchlight::clock::Clock;

use super::{MailFixture, forwarder, message, messages_in, on_each_database};

const HOUR: Duration = Duration::from_hours(1);
const YEAR: Duration = Duration::from_hours(365 * 24);

/// A forwarder on the same database that reads a clock which is ahead.
fn ahead(fixture: &MailFixture, by: Duration) -> OutboxSender {
    let clock = Clock::manual(fixture.service.clock.now().after(by));
    OutboxSender { clock, ..forwarder(&fixture.service, &fixture.server.url()) }
}

async fn step(forwarder: OutboxSender) -> SendStep {
    let step = forwarder.step().await.expect("a database that answers");
    forwarder.store.close().await;
    step
}

#[tokio::test]
async fn mails_that_were_sent_later_than_now_do_not_delay_the_next() {
    on_each_database(async |fixture| {
        for (number, by) in [(1, HOUR / 2), (3, HOUR), (5, 30 * HOUR), (7, YEAR)] {
            fixture.write(&message(number)).await;
            step(ahead(fixture, by)).await;
            assert_eq!(messages_in(&fixture.server.next_mail().await), [number], "{by:?} ahead");
            fixture.write(&message(number + 1)).await;
            fixture.run().await;
            let mails = fixture.server.mails().await;
            assert_eq!(mails.iter().flat_map(messages_in).collect::<Vec<_>>(), [number + 1], "{by:?} ahead");
        }
    })
    .await;
}

#[tokio::test]
async fn a_message_whose_next_try_is_a_year_ahead_is_tried_now() {
    on_each_database(async |fixture| {
        fixture.write(&message(1)).await;
        fixture.server.command("stop-listening").await;
        assert!(matches!(step(ahead(fixture, YEAR)).await, SendStep::Failed(_)));
        fixture.server.command("listen-again").await;
        assert!(matches!(fixture.step().await, SendStep::Idle(Some(due)) if due == fixture.service.clock.now()));
        fixture.run().await;
        assert_eq!(messages_in(&fixture.server.next_mail().await), [1]);
    })
    .await;
}

#[tokio::test]
async fn a_lease_that_ends_in_a_year_has_ended_and_the_same_mail_goes_again() {
    on_each_database(async |fixture| {
        fixture.write(&message(1)).await;
        fixture.server.command("drop answer").await;
        let ahead = ahead(fixture, YEAR);
        assert!(matches!(step(ahead).await, SendStep::Failed(_)));
        // As if the instance had been killed before it noted the outcome.
        fixture.service.database.execute("UPDATE outbox SET state = 'leased'").await;
        let first = fixture.server.next_mail().await;
        fixture.server.command("accept").await;
        fixture.step().await;
        fixture.run().await;
        let again = fixture.server.next_mail().await;
        assert_eq!(first.source, again.source);
        assert_eq!(fixture.states().await, ["sent"]);
    })
    .await;
}

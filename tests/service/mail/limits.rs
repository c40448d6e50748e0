//! However many messages come, and however long they waited, the makers get a bounded number of mails.

use std::time::Duration;

use futures_util::future::join_all;
use porchlight::actions::SendStep;
use porchlight::domain::outbox::MakerMailKind;
use porchlight::domain::time::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::{MailFixture, forwarder, message, messages_in, on_each_database};
use crate::harness::ReceivedMail;

const HOUR: Duration = Duration::from_hours(1);

fn is_summary(mail: &ReceivedMail) -> bool {
    mail.header("subject").starts_with("Contact messages wait [")
}

/// The largest number of mails in any hour.
fn most_in_an_hour(times: &[Timestamp]) -> usize {
    let within = |start: Timestamp| times.iter().filter(|at| **at >= start && start.until(**at) < HOUR).count();
    times.iter().map(|start| within(*start)).max().unwrap_or_default()
}

#[tokio::test]
async fn a_flood_becomes_sixty_mails_an_hour_and_one_summary() {
    on_each_database(async |fixture| {
        let other = forwarder(&fixture.service, &fixture.server.url());
        let (mut times, mut summaries, mut messages) = (Vec::new(), Vec::new(), Vec::new());
        for number in 1..=260 {
            // A message every twenty seconds, and then silence.
            if number <= 200 {
                fixture.write(&message(number)).await;
            }
            while let SendStep::Sent = fixture.step().await {}
            while let SendStep::Sent = other.step().await.expect("a database that answers") {}
            let now = fixture.service.clock.now();
            for mail in fixture.server.mails().await {
                times.push(now);
                if is_summary(&mail) {
                    summaries.push((now, mail.text));
                } else {
                    messages.extend(messages_in(&mail));
                }
            }
            fixture.service.clock.advance(Duration::from_secs(20));
        }
        assert_eq!(most_in_an_hour(&times), 60, "the limit is reached, and kept");
        let [(_, summary)] = summaries.as_slice() else { panic!("one summary: {summaries:#?}") };
        assert!(summary.contains("messages wait") && summary.contains("porchlight inbox list"), "{summary}");
        let told: usize = summary.split_whitespace().next().unwrap().parse().unwrap();
        assert!((1..200).contains(&told), "{summary}");
        messages.sort_unstable();
        assert_eq!(messages, (1..=200).collect::<Vec<_>>(), "the rest went on when there was room");
        other.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn the_size_of_mail_is_limited_too() {
    on_each_database(async |fixture| {
        let now = fixture.service.clock.now().unix_millis();
        let large = 20 * 1024 * 1024 - 4 * 1024 - 200;
        let log = format!("INSERT INTO maker_mails (id, kind, at, bytes) VALUES ('a', 'messages', {now}, {large})");
        fixture.service.database.execute(&log).await;
        let text = format!("Number 1.\n{}", "x".repeat(3900));
        fixture.write(&json!({ "email": "ada@example.com", "message": text })).await;
        fixture.run().await;
        let [summary] = fixture.server.mails().await.try_into().expect("one mail");
        assert!(is_summary(&summary) && summary.text.starts_with("1 contact message waits"), "{summary:#?}");
        assert_eq!(fixture.states().await, ["waiting"]);
        assert_eq!(fixture.service.database.texts("SELECT mail FROM outbox").await, [""; 0], "it may join a digest");

        fixture.service.clock.advance(HOUR);
        fixture.run().await;
        assert_eq!(messages_in(&fixture.server.next_mail().await), [1]);
    })
    .await;
}

#[tokio::test]
async fn instances_that_send_at_once_share_the_last_places() {
    on_each_database(async |fixture| {
        let (store, now) = (&fixture.forwarder.store, fixture.service.clock.now());
        let reserve = async |_| {
            let id = Uuid::now_v7();
            store.reserve_maker_mail(id, MakerMailKind::Messages, 1000, now).await.expect("an answer")
        };
        let mut reserved = Vec::new();
        // No more at once than the pool has connections: nobody waits for one for so long that it fails.
        for _ in 0..20 {
            reserved.extend(join_all((0..4).map(reserve)).await);
        }
        assert_eq!(reserved.into_iter().filter(|reserved| *reserved).count(), 59, "one is kept for the summary");
    })
    .await;
}

#[tokio::test]
async fn a_mail_that_certainly_did_not_arrive_does_not_count() {
    on_each_database(async |fixture| {
        fixture.write(&message(1)).await;
        fixture.server.command("reply content 451 4.3.0 later").await;
        fixture.failed_step().await;
        assert_eq!(fixture.service.database.count("maker_mails").await, 0);
        fixture.server.command("accept").await;
        fixture.server.command("drop answer").await;
        fixture.advance_to_next_try().await;
        fixture.failed_step().await;
        assert_eq!(fixture.service.database.count("maker_mails").await, 1, "it may have arrived");
    })
    .await;
}

/// Stores messages that wait for a later try after an outage.
async fn insert_backlog(fixture: &MailFixture, count: u64) {
    let later = fixture.service.clock.now().after(HOUR).unix_millis();
    let ids: Vec<_> = (0..count).map(|number| Uuid::from_u64_pair(1, number)).collect();
    for chunk in ids.chunks(1000) {
        let rows = |row: &dyn Fn(&Uuid) -> String| chunk.iter().map(row).collect::<Vec<_>>().join(", ");
        let messages = rows(&|id| format!("('{id}', 'a@example.com', 'a@example.com', 'Number 9.', 0)"));
        let outbox = rows(&|id| format!("('{id}', 'message', 'waiting', {later}, 12)"));
        let insert = format!(
            "INSERT INTO messages (id, address, email, body, at) VALUES {messages}; \
             INSERT INTO outbox (id, kind, state, at, tries) VALUES {outbox}"
        );
        fixture.service.database.execute(&insert).await;
    }
}

#[tokio::test]
async fn a_huge_backlog_is_made_due_in_bounded_steps() {
    on_each_database(async |fixture| {
        const ROWS_PER_MAIL: i64 = porchlight::domain::limits::MAX_ROWS_PER_STEP;
        insert_backlog(fixture, 12_000).await;
        fixture.write(&message(1)).await;
        assert!(matches!(fixture.step().await, SendStep::Sent));
        let mails = i64::try_from(fixture.server.mails().await.len()).unwrap();
        let waiting_on = "SELECT COUNT(*) FROM outbox WHERE state = 'waiting' AND tries = 12 AND at > ";
        let now = fixture.service.clock.now().unix_millis();
        let left = fixture.service.database.number(&format!("{waiting_on}{now}")).await;
        assert!(mails > 1, "the backlog goes on");
        assert_eq!(left, 12_000 - mails * ROWS_PER_MAIL, "{mails} mails");
    })
    .await;
}

#[tokio::test]
async fn a_mail_is_not_repeated_because_the_backlog_cannot_be_changed() {
    on_each_database(async |fixture| {
        insert_backlog(fixture, 10).await;
        let refusal = if fixture.service.database.is_postgres() {
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'too slow'; END $$; \
             CREATE TRIGGER refuse BEFORE UPDATE ON outbox FOR EACH ROW WHEN (OLD.tries = 12) EXECUTE FUNCTION refuse()"
        } else {
            "CREATE TRIGGER refuse BEFORE UPDATE ON outbox WHEN (OLD.tries = 12) BEGIN SELECT RAISE(ABORT, 'too slow'); END"
        };
        fixture.service.database.execute(refusal).await;
        fixture.write(&message(1)).await;
        fixture.run().await;
        fixture.service.clock.advance(Duration::from_mins(5));
        fixture.run().await;
        assert_eq!(fixture.server.mails().await.len(), 1);
        let sent = "SELECT COUNT(*) FROM outbox WHERE state = 'sent'";
        assert_eq!(fixture.service.database.number(sent).await, 1);
    })
    .await;
}

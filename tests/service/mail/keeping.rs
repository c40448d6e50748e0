//! How long contact messages are kept after they were forwarded.

use std::time::Duration;

use porchlight::actions::Pruner;
use porchlight::config::RawSettings;
use porchlight::domain::time::Timestamp;

use super::program::serve;
use super::{MailFixture, message, on_each_database};
use crate::harness::{Database, MailServer, NOW, Program, Service, each_migrated_database, wait_until};
use porchlight::domain::contact::Retention;

const DAY: Duration = Duration::from_hours(24);

/// An instance that keeps messages for this long.
fn pruner(service: &Service, keep: &str) -> Pruner {
    Pruner {
        store: service.database.store(),
        clock: service.clock.clone(),
        keep_messages: Retention::parse(keep).expect("a retention"),
    }
}

impl MailFixture {
    /// Writes a message and has it forwarded.
    async fn forward(&self, number: usize) {
        self.write(&message(number)).await;
        self.run().await;
    }

    async fn kept(&self) -> Vec<String> {
        let rows = self.service.database.texts("SELECT body FROM messages ORDER BY id").await;
        assert_eq!(self.service.database.count("outbox").await, i64::try_from(rows.len()).unwrap());
        rows
    }
}

#[tokio::test]
async fn a_message_is_deleted_when_it_was_forwarded_longer_ago_than_the_setting_says() {
    on_each_database(async |fixture| {
        let pruner = pruner(&fixture.service, "24 months");
        fixture.forward(1).await;
        fixture.forward(2).await;
        // To the same day of the same month, on which the second one was forwarded exactly 24 months ago.
        fixture.service.clock.advance(DAY * 731);
        assert_eq!(pruner.step().await.unwrap(), 1);
        assert_eq!(fixture.kept().await, ["Number 2."]);

        fixture.service.clock.advance(DAY);
        assert_eq!(pruner.step().await.unwrap(), 1);
        assert!(fixture.kept().await.is_empty());
        assert_eq!(fixture.service.database.count("message_hashes").await, 0);
        pruner.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn messages_that_wait_or_failed_stay() {
    on_each_database(async |fixture| {
        let pruner = pruner(&fixture.service, "30 days");
        fixture.forward(1).await;
        for number in 2..=4 {
            fixture.write(&message(number)).await;
        }
        let database = &fixture.service.database;
        let set = async |state: &str, body: &str| {
            let of = format!("id = (SELECT id FROM messages WHERE body = '{body}')");
            database.execute(&format!("UPDATE outbox SET state = '{state}', at = 1 WHERE {of}")).await;
        };
        set("failed", "Number 3.").await;
        set("leased", "Number 4.").await;
        fixture.service.clock.advance(DAY * 400);
        assert_eq!(pruner.step().await.unwrap(), 1);
        assert_eq!(fixture.kept().await, ["Number 2.", "Number 3.", "Number 4."]);
        pruner.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn without_the_setting_messages_are_kept_forever() {
    on_each_database(async |fixture| {
        let pruner = pruner(&fixture.service, "forever");
        fixture.forward(1).await;
        fixture.service.clock.advance(DAY * 40_000);
        assert_eq!(pruner.step().await.unwrap(), 0);
        assert_eq!(fixture.kept().await.len(), 1);
        pruner.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn all_instances_together_look_once_a_day() {
    on_each_database(async |fixture| {
        let [one, other] = [(); 2].map(|()| pruner(&fixture.service, "30 days"));
        // More than one transaction deletes.
        fixture.write_many(600).await;
        fixture.service.database.execute("UPDATE outbox SET state = 'sent', at = 1").await;
        let (by_one, by_other) = tokio::join!(one.step(), other.step());
        let mut deleted = [by_one.unwrap(), by_other.unwrap()];
        deleted.sort_unstable();
        assert_eq!(deleted, [0, 600]);

        fixture.write(&message(601)).await;
        fixture.service.database.execute("UPDATE outbox SET state = 'sent', at = 1").await;
        fixture.service.clock.advance(Duration::from_hours(23));
        assert_eq!((one.step().await.unwrap(), other.step().await.unwrap()), (0, 0), "the day is not over");
        fixture.service.clock.advance(Duration::from_hours(1));
        assert_eq!((other.step().await.unwrap(), one.step().await.unwrap()), (1, 0));
        one.store.close().await;
        other.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn messages_are_deleted_once_a_day_and_a_wrong_clock_does_not_end_that() {
    on_each_database(async |fixture| {
        let pruner = pruner(&fixture.service, "30 days");
        fixture.forward(1).await;
        fixture.service.clock.advance(DAY * 60);
        let begin = async |at: Timestamp| {
            let database = &fixture.service.database;
            database.execute("DELETE FROM tasks WHERE name = 'delete_messages'").await;
            let begun = format!("INSERT INTO tasks (name, at) VALUES ('delete_messages', {})", at.unix_millis());
            database.execute(&begun).await;
        };
        begin(fixture.service.clock.now()).await;
        assert_eq!(pruner.step().await.unwrap(), 0);
        fixture.service.clock.advance(DAY);
        assert_eq!(pruner.step().await.unwrap(), 1);

        fixture.forward(2).await;
        fixture.service.clock.advance(DAY * 60);
        begin(fixture.service.clock.now().after(DAY * 1000)).await;
        assert_eq!(pruner.step().await.unwrap(), 1);
        pruner.store.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_start_deletes_the_hashes_of_earlier_months_whatever_other_instances_did() {
    for database in each_migrated_database().await {
        let now = NOW.unix_millis();
        let rows = format!(
            "INSERT INTO letter_months (hash, month, letter) VALUES ('a', '2026-10', 'x'), ('b', '2026-11', 'x'); \
             INSERT INTO tasks (name, at) VALUES ('prune', {now})"
        );
        database.execute(&rows).await;
        let service = Service::start(RawSettings::default(), database).await;
        wait_until("one month", async || {
            service.database.texts("SELECT month FROM letter_months").await == ["2026-11"]
        })
        .await;
        service.stop().await;
    }
}

#[tokio::test]
async fn what_could_not_be_deleted_is_deleted_ten_minutes_later() {
    on_each_database(async |fixture| {
        let database = &fixture.service.database;
        // The service deletes at its start, too: hashes first, then sources.
        wait_until("the start is over", async || database.count("tasks WHERE name = 'prune_sources'").await == 1).await;
        database.execute("INSERT INTO letter_months (hash, month, letter) VALUES ('a', '2026-10', 'x')").await;
        let store = fixture.forwarder.store.clone();
        let pruner = Pruner { store, clock: fixture.service.clock.clone(), keep_messages: None };
        fixture.service.clock.advance(DAY);
        database.execute("ALTER TABLE letter_months RENAME TO other").await;
        assert!(pruner.step().await.is_err());
        database.execute("ALTER TABLE other RENAME TO letter_months").await;
        for (minutes, left) in [(9, 1), (1, 0)] {
            fixture.service.clock.advance(Duration::from_mins(minutes));
            pruner.step().await.expect("to be done");
            assert_eq!(database.count("letter_months").await, left);
        }
    })
    .await;
}

#[tokio::test]
async fn the_service_deletes_messages_by_itself_and_says_how_many() {
    let server = MailServer::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start(serve(folder.path(), &server.url()), "mail_server=127.0.0.1");
    super::program::contact(&program, 1).await;
    super::program::contact(&program, 2).await;
    let database = Database::sqlite_at(&folder.path().join("data/porchlight.db"));
    wait_until("two mails", async || database.count("outbox WHERE state = 'sent'").await == 2).await;
    program.signal(rustix::process::Signal::TERM);
    program.end();

    database.execute("UPDATE outbox SET at = 1 WHERE id = (SELECT MIN(id) FROM messages)").await;
    let mut command = serve(folder.path(), &server.url());
    command.args(["--keep-messages", "24 months"]);
    let mut program = Program::start(command, "mail_server=127.0.0.1");
    program.wait_for_output("deleted=1");
    assert_eq!(database.texts("SELECT body FROM messages").await, ["Number 2."]);
}

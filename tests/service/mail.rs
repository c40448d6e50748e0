//! Contact messages forwarded to the makers' mailbox, through a real mail server.
//!
//! The tests call the forwarder step by step, with the clock of the service; where the whole program matters,
//! they run it.

mod contents;
mod keeping;
mod limits;
mod program;
mod relays;
mod retries;
mod same_mail;
mod sharing;
mod signatures;
mod wrong_clock;

use std::time::Duration;

use porchlight::actions::{OutboxSender, SendStep};
use porchlight::config::RawSettings;
use porchlight::domain::mail::{Mailbox, Relay};
use porchlight::mail::{MailAddress, Mailer, SendFailure};
use serde_json::{Value, json};

use crate::harness::{Database, MailServer, ReceivedMail, Service, each_migrated_database};

const FROM: &str = "Troupe, the makers <hello@troupe.example>";
const TO: &str = "makers@troupe.example";

/// A service without a forwarder task, and a forwarder whose steps the test runs.
struct MailFixture {
    service: Service,
    server: MailServer,
    forwarder: OutboxSender,
}

/// Runs the same test on SQLite and on PostgreSQL, with a mail server that accepts everything.
async fn on_each_database(test: impl AsyncFn(&mut MailFixture)) {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        on(database, &test).await;
    }
}

/// Runs a test of something that does not depend on the database.
async fn on_one_database(test: impl AsyncFn(&mut MailFixture)) {
    on(Database::migrated_sqlite().await, &test).await;
}

async fn on(database: Database, test: &impl AsyncFn(&mut MailFixture)) {
    let server = MailServer::start().await;
    let service = Service::start(RawSettings::default(), database).await;
    let forwarder = forwarder(&service, &server.url());
    let mut fixture = MailFixture { service, server, forwarder };
    test(&mut fixture).await;
    fixture.forwarder.store.close().await;
    fixture.service.stop().await;
}

fn forwarder(service: &Service, smtp_url: &str) -> OutboxSender {
    let relay = Relay::parse(smtp_url).expect("a mail server");
    OutboxSender {
        store: service.database.store(),
        mailer: Mailer::new(relay, &Mailbox::parse(FROM).expect("a sender")).expect("a sender"),
        to: MailAddress::from_mailbox(&Mailbox::parse(TO).expect("a recipient")).expect("a recipient"),
        desk_email: None,
        confirmations: crate::confirmations::texts(),
        clock: service.clock.clone(),
    }
}

fn message(number: usize) -> Value {
    json!({ "name": "Ada", "email": format!("ada{number}@example.com"), "message": format!("Number {number}.") })
}

impl MailFixture {
    async fn write(&self, message: &Value) {
        self.service.clock.advance(Duration::from_millis(1));
        self.service.post("/api/contact", message).await.expect_ok();
    }

    async fn write_many(&self, count: usize) {
        for number in 1..=count {
            self.write(&message(number)).await;
        }
    }

    async fn step(&self) -> SendStep {
        self.forwarder.step().await.expect("a database that answers")
    }

    /// Steps for as long as mails go.
    async fn run(&self) {
        while let SendStep::Sent = self.step().await {}
    }

    async fn failed_step(&self) -> SendFailure {
        match self.step().await {
            SendStep::Failed(trouble) => trouble,
            other => panic!("{other:?}"),
        }
    }

    /// Advances the clock to the next try; returns by how much.
    async fn advance_to_next_try(&self) -> Duration {
        let now = self.service.clock.now();
        let SendStep::Idle(Some(then)) = self.step().await else { panic!("there is something to do already") };
        let pause = now.until(then);
        self.service.clock.advance(pause);
        pause
    }

    async fn states(&self) -> Vec<String> {
        self.service.database.texts("SELECT state FROM outbox ORDER BY id").await
    }
}

/// The numbers of the messages in a mail, in its order.
fn messages_in(mail: &ReceivedMail) -> Vec<usize> {
    let numbers = mail.text.lines().filter_map(|line| line.trim_start_matches("> ").strip_prefix("Number "));
    numbers.map(|number| number.trim_end_matches('.').parse().expect("a number")).collect()
}

//! Messages on their way to the makers' mailbox, through a real mail server.
//!
//! The forwarder is driven by hand, with the clock of the service; where the whole program matters,
//! the real one runs.

mod contents;
mod program;
mod relays;
mod retries;
mod sharing;

use std::time::Duration;

use porchlight::actions::{ForwardStep, Forwarder};
use porchlight::config::RawSettings;
use porchlight::domain::mailbox::Mailbox;
use porchlight::domain::relay::Relay;
use porchlight::mail::{MailAddress, Mailer, SendFailure};
use porchlight::store::{Database as StoredIn, Store};
use serde_json::{Value, json};

use crate::harness::{Database, MailServer, ReceivedMail, Service, each_migrated_database};

const FROM: &str = "Troupe, the makers <hello@troupe.example>";
const TO: &str = "makers@troupe.example";

/// A service that forwards nothing by itself, and whoever does it by hand.
struct Post {
    service: Service,
    server: MailServer,
    forwarder: Forwarder,
}

/// Runs the same test on SQLite and on PostgreSQL, with a mail server that takes everything.
async fn on_each_database(test: impl AsyncFn(&mut Post)) {
    for database in each_migrated_database().await {
        println!("on {database:?}");
        on(database, &test).await;
    }
}

/// For what the database has no part in.
async fn on_one_database(test: impl AsyncFn(&mut Post)) {
    on(Database::migrated_sqlite().await, &test).await;
}

async fn on(database: Database, test: &impl AsyncFn(&mut Post)) {
    let server = MailServer::start().await;
    let service = Service::start(RawSettings::default(), database).await;
    let forwarder = forwarder(&service, &server.url());
    let mut post = Post { service, server, forwarder };
    test(&mut post).await;
    post.forwarder.store.close().await;
    post.service.stop().await;
}

fn forwarder(service: &Service, smtp_url: &str) -> Forwarder {
    let database = StoredIn::parse(service.database.url()).expect("a database");
    let relay = Relay::parse(smtp_url).expect("a mail server");
    Forwarder {
        store: Store::open(&database).expect("a store"),
        mailer: Mailer::new(relay, &Mailbox::parse(FROM).expect("a sender")).expect("a sender"),
        to: MailAddress::from_mailbox(&Mailbox::parse(TO).expect("a recipient")).expect("a recipient"),
        clock: service.clock.clone(),
    }
}

fn letter(number: usize) -> Value {
    json!({ "name": "Ada", "email": format!("ada{number}@example.com"), "message": format!("Letter {number}.") })
}

impl Post {
    async fn write(&self, letter: &Value) {
        self.service.clock.advance(Duration::from_millis(1));
        self.service.post("/api/contact", letter).await.is_ok();
    }

    async fn write_many(&self, count: usize) {
        for number in 1..=count {
            self.write(&letter(number)).await;
        }
    }

    async fn step(&self) -> ForwardStep {
        self.forwarder.step().await.expect("a database that answers")
    }

    /// Steps for as long as mails go.
    async fn run(&self) {
        while let ForwardStep::Sent = self.step().await {}
    }

    async fn is_stuck(&self) -> SendFailure {
        match self.step().await {
            ForwardStep::Failed(trouble) => trouble,
            other => panic!("{other:?}"),
        }
    }

    /// How long until the next try; the clock is moved there.
    async fn wait(&self) -> Duration {
        let now = self.service.clock.now();
        let ForwardStep::Idle(Some(then)) = self.step().await else { panic!("there is something to do already") };
        let pause = now.until(then);
        self.service.clock.advance(pause);
        pause
    }

    async fn states(&self) -> Vec<String> {
        self.service.database.texts("SELECT state FROM outbox ORDER BY message").await
    }
}

/// The numbers of the letters in a mail, as they stand there.
fn letters_in(mail: &ReceivedMail) -> Vec<usize> {
    let numbers = mail.text.lines().filter_map(|line| line.trim_start_matches("> ").strip_prefix("Letter "));
    numbers.map(|number| number.trim_end_matches('.').parse().expect("a number")).collect()
}

//! Durable downloads by concurrent clients, compared with one commit per request and with no storage. PostgreSQL is
//! measured twice: on this machine, and a millisecond away.

use std::time::Instant;

use sqlx::{Connection, Executor, PgConnection};

use crate::load::{LoadResult, ROUNDS, load, numbered, post};
use crate::measure::{median, millis};
use crate::report::{Goal, Report, Unit};
use crate::service::{Database, Server};
use crate::{peer, relay};

/// A peer with its name and the goal of the ratio.
struct Peer {
    name: &'static str,
    server: Server,
    goal: Option<Goal>,
}

pub async fn run(report: &mut Report) {
    for (clients, of_no_storage) in [(64, 0.35), (256, 0.5)] {
        let (ours, theirs) = (Database::sqlite(), Database::sqlite());
        // One connection: others would only wait for its write lock.
        let commits = Peer::new("a commit per request", peer::start(&theirs.url(), 1)).goal(Goal::AtLeast(5.0));
        let no_storage = Peer::new("no storage", peer::start("none", 0)).goal(Goal::AtLeast(of_no_storage));
        compare(report, "SQLite", clients, Server::start(&ours), [commits, no_storage]).await;

        let (ours, theirs) = (Database::postgres().await, Database::postgres().await);
        let pool = Peer::new("a commit per request", peer::start(&theirs.url(), 64)).goal(Goal::AtLeast(2.0));
        let no_storage = Peer::new("no storage", peer::start("none", 0));
        compare(report, "PostgreSQL", clients, Server::start(&ours), [pool, no_storage]).await;

        let (ours, theirs, single) =
            (Database::postgres().await, Database::postgres().await, Database::postgres().await);
        let relay = relay::start(&ours);
        let [ours, theirs, single] = [ours, theirs, single].map(|database| database.behind(&relay));
        println!("\nround trip of SELECT 1 behind the relay: {:.2} ms", round_trip(&ours).await);
        let pool = Peer::new("a commit per request, 64 connections", peer::start(&theirs.url(), 64));
        let single =
            Peer::new("a commit per request, one connection", peer::start(&single.url(), 1)).goal(Goal::AtLeast(10.0));
        compare(report, "PostgreSQL 1 ms away", clients, Server::start(&ours), [pool, single]).await;
    }
}

async fn compare(report: &mut Report, storage: &str, clients: usize, ours: Server, peers: [Peer; 2]) {
    println!("\n## {storage}, {clients} clients, median of {ROUNDS} alternating rounds");
    let ours = Peer::new("porchlight", ours);
    let (mut rounds, requests): ([Vec<LoadResult>; 3], _) = (Default::default(), [(); 3].map(|()| numbered(download)));
    for _ in 0..ROUNDS {
        for ((peer, request), rounds) in std::iter::once(&ours).chain(&peers).zip(&requests).zip(&mut rounds) {
            rounds.push(load(std::slice::from_ref(&peer.server), clients, request).await);
        }
    }
    for (peer, rounds) in std::iter::once(&ours).chain(&peers).zip(&rounds) {
        println!("{:<40} {}", peer.name, LoadResult::median(rounds));
    }
    let [rates, others @ ..] = rounds.each_ref().map(|rounds| LoadResult::rates_of(rounds));
    for (peer, theirs) in peers.iter().zip(&others) {
        let work = format!("downloads, {storage}, {clients} clients");
        report.compare(work, Unit::PerSecond, &rates, (peer.name, theirs), peer.goal);
    }
}

/// Every tenth person has downloaded before.
pub fn download(number: u64) -> String {
    let person = if number % 10 == 9 { number / 2 } else { number };
    let (updates, source) = (number.is_multiple_of(3), number % 40);
    let order = format!(r#"{{"email":"person{person}@example.com","updates":{updates},"source":"source {source}"}}"#);
    post("/api/download", &order)
}

/// Returns the median time of the shortest query in milliseconds.
async fn round_trip(database: &Database) -> f64 {
    let mut connection = PgConnection::connect(&database.url()).await.expect("the database server");
    let mut durations = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        connection.execute("SELECT 1").await.expect("a row");
        durations.push(start.elapsed());
    }
    millis(median(durations))
}

impl Peer {
    fn new(name: &'static str, server: Server) -> Self {
        Self { name, server, goal: None }
    }

    fn goal(self, goal: Goal) -> Self {
        Self { goal: Some(goal), ..self }
    }
}

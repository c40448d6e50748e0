//! Durable downloads by many callers at once, beside a commit a request and beside no storage at all.

use serde_json::json;

use crate::load::{Outcome, load, post};
use crate::measure::{median, ratio};
use crate::peer;
use crate::service::{Database, Serving};

const ROUNDS: u64 = 5;
const REQUESTS: u64 = 20_000;

pub async fn run() {
    for callers in [64, 256] {
        for kind in ["SQLite", "PostgreSQL"] {
            println!("\n## {kind}, {callers} callers, {REQUESTS} downloads, the middle of {ROUNDS} rounds in turn");
            let (ours, theirs) = match kind {
                "SQLite" => (Database::sqlite(), Database::sqlite()),
                _ => (Database::postgres().await, Database::postgres().await),
            };
            let contestants = [
                ("porchlight", Serving::start(&ours)),
                ("a commit a request", peer::start(Some(&theirs))),
                ("no storage", peer::start(None)),
            ];
            let mut rounds: [Vec<Outcome>; 3] = Default::default();
            for round in 0..ROUNDS {
                for ((_, serving), outcomes) in contestants.iter().zip(&mut rounds) {
                    outcomes.push(load(serving, callers, REQUESTS, |number| download(round * REQUESTS + number)).await);
                }
            }
            tell(&contestants.map(|(name, _)| name), &rounds);
        }
    }
}

/// Every tenth is somebody who has been there before.
fn download(number: u64) -> String {
    let person = if number % 10 == 9 { number / 2 } else { number };
    let order = json!({
        "email": format!("person{person}@example.com"),
        "updates": number.is_multiple_of(3),
        "source": format!("source {}", number % 40),
    });
    post("/api/download", &order.to_string())
}

fn tell(names: &[&str; 3], rounds: &[Vec<Outcome>; 3]) {
    let middle = rounds.each_ref().map(|outcomes| median(outcomes.iter().map(|outcome| outcome.a_second).collect()));
    for ((name, outcomes), middle) in names.iter().zip(rounds).zip(middle) {
        let nearest = outcomes.iter().find(|outcome| outcome.a_second >= middle).expect("a middle one");
        println!("{name:<20} {nearest}");
    }
    let [ours, commits, nothing] = middle;
    println!("against a commit a request {}, against no storage {}", ratio(ours, commits), ratio(ours, nothing));
}

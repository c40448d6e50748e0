//! Durable downloads by concurrent clients, compared with one commit per request and with no storage.

use serde_json::json;

use crate::load::{LoadResult, load, post};
use crate::measure::{median, ratio};
use crate::peer;
use crate::service::{Database, Server};

const ROUNDS: u64 = 5;
const REQUESTS: u64 = 20_000;

pub async fn run() {
    for clients in [64, 256] {
        for kind in ["SQLite", "PostgreSQL"] {
            println!("\n## {kind}, {clients} clients, {REQUESTS} downloads, median of {ROUNDS} alternating rounds");
            let (ours, theirs) = match kind {
                "SQLite" => (Database::sqlite(), Database::sqlite()),
                _ => (Database::postgres().await, Database::postgres().await),
            };
            let servers = [
                ("porchlight", Server::start(&ours)),
                ("commit per request", peer::start(Some(&theirs))),
                ("no storage", peer::start(None)),
            ];
            let mut rounds: [Vec<LoadResult>; 3] = Default::default();
            for round in 0..ROUNDS {
                for ((_, server), results) in servers.iter().zip(&mut rounds) {
                    results.push(load(server, clients, REQUESTS, |number| download(round * REQUESTS + number)).await);
                }
            }
            print_results(&servers.map(|(name, _)| name), &rounds);
        }
    }
}

/// Every tenth person has downloaded before.
fn download(number: u64) -> String {
    let person = if number % 10 == 9 { number / 2 } else { number };
    let order = json!({
        "email": format!("person{person}@example.com"),
        "updates": number.is_multiple_of(3),
        "source": format!("source {}", number % 40),
    });
    post("/api/download", &order.to_string())
}

fn print_results(names: &[&str; 3], rounds: &[Vec<LoadResult>; 3]) {
    let medians =
        rounds.each_ref().map(|results| median(results.iter().map(|result| result.requests_per_second).collect()));
    for ((name, results), median) in names.iter().zip(rounds).zip(medians) {
        let median_round = results.iter().find(|result| result.requests_per_second >= median).expect("a round");
        println!("{name:<20} {median_round}");
    }
    let [ours, commits, no_storage] = medians;
    let (commits, no_storage) = (ratio(ours, commits), ratio(ours, no_storage));
    println!("relative to commit per request {commits}, to no storage {no_storage}");
}

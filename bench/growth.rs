//! Latency of signups in a large database, compared with a small one.

use crate::load::{load, post};
use crate::measure::{median, ratio, resident_memory, seconds};
use crate::service::{Database, Server};
use crate::statistics::fill;

const SIZES: [u64; 2] = [10_000, 10_000_000];
const CLIENTS: u64 = 64;
const ROUNDS: u64 = 5;
const REQUESTS: u64 = 20_000;

pub async fn run() {
    for kind in ["SQLite", "PostgreSQL"] {
        println!("\n## {kind}: {REQUESTS} joins by {CLIENTS} clients, median of {ROUNDS} rounds");
        let mut latencies = Vec::new();
        for people in SIZES {
            let database = if kind == "SQLite" { Database::sqlite() } else { Database::postgres().await };
            fill(&database, people, 1).await;
            let server = Server::start(&database);
            let mut rounds = Vec::new();
            for round in 0..ROUNDS {
                rounds.push(load(&server, CLIENTS, REQUESTS, |number| join(people, round * REQUESTS + number)).await);
            }
            let p99 = median(rounds.iter().map(|result| result.p99).collect());
            let requests_per_second = median(rounds.iter().map(|result| result.requests_per_second).collect());
            let memory = resident_memory(server.pid()) >> 20;
            println!("{people:>10} people  p99 {}  {requests_per_second:>6.0}/s  {memory} MiB", seconds(p99));
            latencies.push(p99.as_secs_f64());
        }
        println!("p99 with {} people, relative to {}: {}", SIZES[1], SIZES[0], ratio(latencies[1], latencies[0]));
    }
}

/// Every second person is already known, picked from anywhere in the table.
fn join(people: u64, number: u64) -> String {
    let known = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % people;
    let person = if number.is_multiple_of(2) { format!("p{known}") } else { format!("new{number}") };
    post("/api/waitlist", &format!(r#"{{"email":"{person}@example.com","source":"bench"}}"#))
}

//! What a signup takes when there are a thousand times as many people.

use crate::load::{load, post};
use crate::measure::{median, memory, ratio, seconds};
use crate::service::{Database, Serving};
use crate::statistics::fill;

const SIZES: [u64; 2] = [10_000, 10_000_000];
const CALLERS: u64 = 64;
const ROUNDS: u64 = 5;
const REQUESTS: u64 = 20_000;

pub async fn run() {
    for kind in ["SQLite", "PostgreSQL"] {
        println!("\n## {kind}: {REQUESTS} joins of {CALLERS} callers, the middle of {ROUNDS} rounds");
        let mut slowest = Vec::new();
        for people in SIZES {
            let database = if kind == "SQLite" { Database::sqlite() } else { Database::postgres().await };
            fill(&database, people, 1).await;
            let serving = Serving::start(&database);
            let mut rounds = Vec::new();
            for round in 0..ROUNDS {
                rounds.push(load(&serving, CALLERS, REQUESTS, |number| join(people, round * REQUESTS + number)).await);
            }
            let taken = median(rounds.iter().map(|outcome| outcome.slowest_hundredth).collect());
            let a_second = median(rounds.iter().map(|outcome| outcome.a_second).collect());
            let memory = memory(serving.id()) >> 20;
            println!("{people:>10} people  p99 {}  {a_second:>6.0}/s  {memory} MiB", seconds(taken));
            slowest.push(taken.as_secs_f64());
        }
        println!("p99 with {} people against {}: {}", SIZES[1], SIZES[0], ratio(slowest[1], slowest[0]));
    }
}

/// One of two is known already: somebody anywhere among the many.
fn join(people: u64, number: u64) -> String {
    let known = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % people;
    let person = if number.is_multiple_of(2) { format!("p{known}") } else { format!("new{number}") };
    post("/api/waitlist", &format!(r#"{{"email":"{person}@example.com","source":"bench"}}"#))
}

//! Durable downloads on several instances that share one PostgreSQL, compared with one instance.

use crate::load::{LoadResult, load, numbered};
use crate::report::{Report, Unit};
use crate::service::{Database, Server};
use crate::writes::download;

const INSTANCES: [usize; 4] = [1, 2, 5, 10];
/// Fewer than elsewhere: each starts all processes anew.
const ROUNDS: usize = 5;

pub async fn run(report: &mut Report) {
    for clients in [64, 256, 1024] {
        println!("\n## {clients} clients, median of {ROUNDS} alternating rounds");
        let database = Database::postgres().await;
        let (mut rounds, request) = (INSTANCES.map(|_| Vec::new()), numbered(download));
        for _ in 0..ROUNDS {
            for (count, rounds) in INSTANCES.into_iter().zip(&mut rounds) {
                let servers: Vec<_> = (0..count).map(|_| Server::start(&database)).collect();
                // The first requests of a process wait for connections and for plans of statements.
                load(&servers, clients, &request).await;
                rounds.push(load(&servers, clients, &request).await);
            }
        }
        for (count, rounds) in INSTANCES.iter().zip(&rounds) {
            println!("{count:>2} instances {}", LoadResult::median(rounds));
        }
        let rates = rounds.each_ref().map(|rounds| LoadResult::rates_of(rounds));
        for (count, several) in INSTANCES.iter().zip(&rates).skip(1) {
            let work = format!("downloads, {clients} clients, {count} instances");
            report.compare(work, Unit::PerSecond, several, ("one instance", &rates[0]), None);
        }
    }
}

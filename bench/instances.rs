//! Durable downloads on several instances that share one PostgreSQL, compared with one instance.

use rustix::process::setpriority_process;

use crate::load::{LoadResult, ROUNDS, load, numbered};
use crate::report::{Report, Unit};
use crate::service::{Database, Server};
use crate::writes::download;

const MOST: usize = 10;
const INSTANCES: [usize; 4] = [1, 2, 5, MOST];

pub async fn run(report: &mut Report) {
    let (database, request) = (Database::postgres().await, numbered(download));
    let servers: Vec<_> = (0..MOST).map(|_| Server::start(&database)).collect();
    // The first requests of an instance wait for connections and for plans of statements.
    load(&servers, 256, &request).await;
    // Clients are usually on other machines. Here they are one thread, which would wait for dozens of threads of the servers.
    if setpriority_process(None, -15).is_err() {
        println!("Not run as root: clients have no priority, so many instances store less.");
    }
    for clients in [64, 256, 1024] {
        println!("\n## {clients} clients, median of {ROUNDS} alternating rounds");
        let mut rounds = INSTANCES.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for (count, rounds) in INSTANCES.into_iter().zip(&mut rounds) {
                rounds.push(load(&servers[..count], clients, &request).await);
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
    let _ = setpriority_process(None, 0);
}

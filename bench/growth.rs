//! Signups and commands on databases of 10 thousand to 10 million people.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::fill::{address, fill};
use crate::load::{LoadResult, ROUNDS, load, numbered, post};
use crate::measure::{millis, peak_memory, resident_memory};
use crate::report::{Goal, Report, Unit};
use crate::service::{Database, Server};

const SMALLEST: u64 = 10_000;
const CLIENTS: usize = 64;

/// Fills databases of 10 thousand people, ten times as many, and so on up to `largest`.
pub async fn run(report: &mut Report, largest: u64) {
    let sizes: Vec<_> =
        std::iter::successors(Some(SMALLEST), |size| Some(size * 10)).take_while(|size| *size <= largest).collect();
    for kind in ["SQLite", "PostgreSQL"] {
        println!("\n## {kind}");
        let mut databases = Vec::new();
        for people in &sizes {
            let start = Instant::now();
            let database = if kind == "SQLite" { Database::sqlite() } else { Database::postgres().await };
            fill(&database, *people, 1).await;
            println!("filled with {people} people in {:.0} s", start.elapsed().as_secs_f64());
            databases.push((*people, database));
        }
        for (people, database) in &databases {
            commands(report, kind, *people, database);
        }
        // The backups of millions of people are still being written to disk, and every commit waits for the same disk.
        assert!(Command::new("sync").status().expect("coreutils").success());
        signups(report, kind, &databases).await;
        for (_, database) in databases {
            database.discard().await;
        }
    }
}

/// Compares the latency of joins and the memory of the service in the largest database with those in the smallest.
async fn signups(report: &mut Report, kind: &str, databases: &[(u64, Database)]) {
    println!("\njoins by {CLIENTS} clients, median of {ROUNDS} alternating rounds");
    let (Some(smallest), Some(largest)) = (databases.first(), databases.last()) else { return };
    let both = [smallest, largest];
    let servers = both.map(|(_, database)| Server::start(database));
    let mut rounds = [Vec::new(), Vec::new()];
    let requests = both.map(|(people, _)| numbered(|number| join(*people, number)));
    for _ in 0..ROUNDS {
        for ((server, request), rounds) in servers.iter().zip(&requests).zip(&mut rounds) {
            rounds.push(load(std::slice::from_ref(server), CLIENTS, request).await);
        }
    }
    for ((people, _), rounds) in both.iter().zip(&rounds) {
        println!("{people:>10} people {}", LoadResult::median(rounds));
    }
    let (work, peer) = (format!("{kind} with {} people", largest.0), format!("with {}", smallest.0));
    let [of_smallest, of_largest] =
        rounds.map(|rounds| rounds.iter().map(|round| millis(round.p99)).collect::<Vec<_>>());
    report.compare(
        format!("p99 of a join, {work}"),
        Unit::Milliseconds,
        &of_largest,
        (&peer, &of_smallest),
        Some(Goal::AtMost(2.0)),
    );
    let [of_smallest, of_largest] = servers.map(|server| [resident_memory(server.pid())]);
    report.compare(
        format!("memory of the service, {work}"),
        Unit::Mebibytes,
        &of_largest,
        (&peer, &of_smallest),
        Some(Goal::AtMost(1.2)),
    );
}

/// Four of five people are already known, picked from anywhere in the table; the others are new and get anywhere in it.
fn join(people: u64, number: u64) -> String {
    let anything = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let email = match number % 5 {
        0 => format!("{anything:016x}@example.com"),
        _ => address(anything % people, people),
    };
    post("/api/waitlist", &format!(r#"{{"email":"{email}","source":"bench"}}"#))
}

/// Measures the commands that makers use.
fn commands(report: &mut Report, kind: &str, people: u64, database: &Database) {
    let known = |person: u64| address(person, people);
    let (shown, erased) = (known(people / 3), known(people / 2));
    let commands: [(&str, &[&str]); 8] = [
        ("people list --limit 100", &["people", "list", "--limit", "100"]),
        ("people list --search 00", &["people", "list", "--search", "00", "--limit", "100"]),
        // Nobody has it, so everybody is looked at.
        ("people list --search @example.org", &["people", "list", "--search", "@example.org", "--limit", "100"]),
        ("people list --state pending", &["people", "list", "--state", "pending", "--limit", "100"]),
        ("people show", &["people", "show", &shown]),
        ("people erase", &["people", "erase", &erased, "--yes"]),
        ("people export", &["people", "export", "export.csv"]),
        ("backup", &["backup", "backup"]),
    ];
    for (name, arguments) in commands {
        let (duration, memory) = run_command(database, arguments);
        report.record_at(people, format!("{name}, {kind}"), Unit::Seconds, duration.as_secs_f64());
        report.record_at(people, format!("memory of {name}, {kind}"), Unit::Mebibytes, memory);
    }
    std::fs::remove_file(database.folder().join("export.csv")).expect("the export");
    std::fs::remove_dir_all(database.folder().join("backup")).expect("the backup");
}

/// Returns how long a command took, and the most memory that it had.
fn run_command(database: &Database, arguments: &[&str]) -> (Duration, f64) {
    let (start, mut memory) = (Instant::now(), 0.0);
    let mut command = database.command(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program");
    loop {
        memory = peak_memory(child.id()).unwrap_or(memory);
        if let Some(status) = child.try_wait().expect("its state") {
            assert!(status.success(), "{arguments:?}");
            return (start.elapsed(), memory);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

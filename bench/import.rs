//! Import of a list of 100,000 people while the service runs.

use std::fmt::Write;

use crate::measure::{median, time};
use crate::report::{Report, Unit};
use crate::service::{Database, Server};

const PEOPLE: u32 = 100_000;
const ROUNDS: u32 = 3;

pub async fn run(report: &mut Report) {
    for database in Database::both().await {
        println!("\n## {}: {PEOPLE} people, half of them opted in, median of {ROUNDS} files", database.name());
        let _service = Server::start(&database);
        let file = database.folder().join("people.csv");
        let mut durations = Vec::new();
        for round in 0..ROUNDS {
            std::fs::write(&file, list(round)).expect("a file");
            durations.push(time(1, || {
                let output = database.command(&["people", "import", "people.csv"]).output().expect("the program");
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }));
        }
        let work = format!("import of {PEOPLE} people, {}", database.name());
        report.record(work, Unit::Seconds, median(durations).as_secs_f64(), None);
    }
}

/// Returns a CSV file with people that no other round has.
fn list(round: u32) -> String {
    let mut list = "email,updates\n".to_owned();
    for number in 0..PEOPLE {
        writeln!(list, "person{number}.{round}@example.com,{}", number % 2 == 0).expect("memory");
    }
    list
}

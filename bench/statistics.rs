//! Statistics over ten million events of three years, compared with counting the events again.

use std::time::Instant;

use serde_json::Value;

use crate::fill::{DAYS, SOURCES, fill, first_day};
use crate::load::get;
use crate::measure::{median, time};
use crate::report::{Report, Unit};
use crate::service::{Database, Server, free_address};

const EVENTS: u64 = 10_000_000;
const EVENTS_PER_PERSON: u64 = 2;
const RUNS: usize = 5;

/// The query that statistics would need without the `counts` table.
const RECOUNT: &str = "SELECT at / 86400000, kind, via, source, COUNT(*) FROM signups GROUP BY 1, 2, 3, 4";

pub async fn run(report: &mut Report) {
    for database in Database::both().await {
        let name = database.name();
        println!("\n## {name}: {EVENTS} events of {DAYS} days from {SOURCES} sources, median of {RUNS} runs");
        fill(&database, EVENTS / EVENTS_PER_PERSON, EVENTS_PER_PERSON).await;
        let ops_address = free_address();
        let service = Server::start_with(&database, &["--ops-listen", &ops_address.to_string()]);
        let start = Instant::now();
        database.execute(RECOUNT).await;
        let recount = [start.elapsed().as_secs_f64()];
        let recount = ("counting the events", &recount[..]);

        for arguments in ["--by day".to_owned(), format!("--by month --since {}", first_date())] {
            let arguments: Vec<_> = ["stats", "--json"].into_iter().chain(arguments.split(' ')).collect();
            let stats = || database.command(&arguments).output().expect("the program").stdout;
            let duration = time(RUNS, || drop(stats())).as_secs_f64();
            let json: Value = serde_json::from_slice(&stats()).expect("JSON");
            let counted = ["downloads", "joins"].map(|name| json["total"][name].as_u64().expect("a number"));
            assert!(
                !arguments.contains(&"--since") || counted.iter().sum::<u64>() == EVENTS,
                "every event is counted: {counted:?}"
            );
            report.compare(format!("{}, {name}", arguments.join(" ")), Unit::Seconds, &[duration], recount, None);
        }
        let mut durations = Vec::new();
        for _ in 0..RUNS {
            let start = Instant::now();
            get(ops_address, "/").await;
            durations.push(start.elapsed());
        }
        let duration = median(durations).as_secs_f64();
        report.compare(format!("dashboard, {name}"), Unit::Seconds, &[duration], recount, None);
        drop(service);
        database.discard().await;
    }
}

fn first_date() -> jiff::civil::Date {
    let days = i64::try_from(first_day()).expect("a number of days");
    jiff::civil::date(1970, 1, 1).saturating_add(jiff::Span::new().days(days))
}

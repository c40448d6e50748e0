//! Statistics over ten million events of three years, compared with counting the events again.

use std::time::Instant;

use serde_json::Value;

use crate::load;
use crate::measure::{ratio, seconds, time};
use crate::service::{Database, Server, free_address};

const EVENTS: u64 = 10_000_000;
const DAYS: u64 = 1095;
const SOURCES: u64 = 200;

/// The query that statistics would need without the `counts` table.
const RECOUNT: &str = "SELECT at / 86400000, kind, via, source, COUNT(*) FROM events GROUP BY 1, 2, 3, 4";

pub async fn run() {
    for database in Database::both().await {
        println!("\n## {}: {EVENTS} events of {DAYS} days from {SOURCES} sources", database.name());
        fill(&database, EVENTS, 2).await;
        let start = Instant::now();
        let ops_address = free_address();
        let _service = Server::start_with(&database, &["--ops-listen", &ops_address.to_string()]);
        println!("{:<60} {}", "migration of an older database, including the counts", seconds(start.elapsed()));
        let start = Instant::now();
        database.execute(RECOUNT).await;
        let recount = start.elapsed();
        println!("{:<60} {}", "recount", seconds(recount));
        let whole_period = ["day", "month"].map(|by| format!("--by {by} --since {}", first_date()));
        let [days, months] = whole_period.each_ref().map(String::as_str);
        for arguments in ["--by day", "--by week", "--by month", days, months] {
            let arguments: Vec<_> = ["stats", "--json"].into_iter().chain(arguments.split(' ')).collect();
            let stats = || database.command(&arguments).output().expect("the program").stdout;
            let duration = time(5, || drop(stats()));
            let json: Value = serde_json::from_slice(&stats()).expect("JSON");
            let counted = ["downloads", "joins"].map(|name| json["total"][name].as_u64().expect("a number"));
            assert!(
                !arguments.contains(&"--since") || counted.iter().sum::<u64>() == EVENTS,
                "every event is counted: {counted:?}"
            );
            let share = ratio(duration.as_secs_f64(), recount.as_secs_f64());
            println!("{:<60} {} ({share} of a recount)", arguments.join(" "), seconds(duration));
        }
        println!("{:<60} {}", "dashboard", seconds(time(5, || load::get(ops_address, "/"))));
    }
}

/// Fills a database with downloads and joins, in the schema of a version without the `counts` table.
pub async fn fill(database: &Database, events: u64, events_per_person: u64) {
    drop(Server::start(database));
    let first_day = first_day();
    let id = match database {
        Database::Sqlite(_) => "printf('%08x-0000-7000-8000-%012x', n, n)",
        Database::Postgres(..) => "lpad(to_hex(n), 8, '0') || '-0000-7000-8000-' || lpad(to_hex(n), 12, '0')",
    };
    let fill = format!(
        "DROP TABLE counts; DROP TABLE sources; DELETE FROM _sqlx_migrations WHERE version >= 6; \
         INSERT INTO events (id, address, kind, at, via, source) \
         WITH RECURSIVE number(n) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT n + 1 FROM number WHERE n < {events} - 1) \
         SELECT {id}, 'p' || (n / {events_per_person}) || '@example.com', CASE n % 5 WHEN 4 THEN 'join' ELSE 'download' END, \
             ({first_day} + n * {DAYS} / {events}) * 86400000 + n % 86400, \
             CASE n % 7 WHEN 0 THEN 'mcp' WHEN 1 THEN 'api' ELSE 'site' END, 'source ' || (n * n % {SOURCES}) \
         FROM number; \
         INSERT INTO people (address, email, first_seen_at, first_download, first_join, opt_in) \
         SELECT address, address, MIN(at), MIN(CASE kind WHEN 'download' THEN id END), \
             MIN(CASE kind WHEN 'join' THEN id END), NULL \
         FROM events GROUP BY address"
    );
    database.execute(&fill).await;
}

/// Returns the first day with events, in days since 1970-01-01.
fn first_day() -> u64 {
    std::time::UNIX_EPOCH.elapsed().expect("a time after 1970").as_secs() / 86400 + 1 - DAYS
}

fn first_date() -> jiff::civil::Date {
    let days = i64::try_from(first_day()).expect("a number of days");
    jiff::civil::date(1970, 1, 1).saturating_add(jiff::Span::new().days(days))
}

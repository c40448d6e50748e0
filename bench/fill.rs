//! Fills a database as years of use would. The program creates the tables; the rows are inserted in the order of all
//! indexes, so that ten million people take minutes.

use crate::service::{Database, Server};

pub const DAYS: u64 = 1095;
pub const SOURCES: u64 = 200;

/// Inserts people with this many events each, spread over [`DAYS`] days. Four of five people downloaded, the others joined.
pub async fn fill(database: &Database, people: u64, events_per_person: u64) {
    drop(Server::start(database));
    let (events, first_day) = (people * events_per_person, first_day());
    let hex = |number: &str, digits: u32| match database {
        Database::Sqlite(_) => format!("printf('%0{digits}x', {number})"),
        Database::Postgres(..) => format!("lpad(to_hex({number}), {digits}, '0')"),
    };
    let numbers = |count: u64| match database {
        Database::Sqlite(_) => format!(
            "(WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < {count} - 1) \
             SELECT n FROM number)"
        ),
        Database::Postgres(..) => format!("generate_series(CAST(0 AS BIGINT), {count} - 1) AS number(n)"),
    };
    let address = |person: &str| format!("{} || '@example.com'", hex(&format!("{person} * {}", spacing(people)), 8));
    let id = |event: &str| format!("{} || '-0000-7000-8000-' || {}", hex(event, 8), hex(event, 12));
    let at = |event: &str| format!("({first_day} + {event} * {DAYS} / {events}) * 86400000 + {event} % 86400");
    let joined = |person: &str| format!("{person} % 5 = 4");
    let (person, first_event) = (format!("(n / {events_per_person})"), format!("(n * {events_per_person})"));
    let statements = [
        format!(
            "INSERT INTO people (address, email, first_seen_at, first_download, first_join) \
             SELECT {address}, {address}, {at}, CASE WHEN {joined} THEN NULL ELSE {id} END, \
                 CASE WHEN {joined} THEN {id} END FROM {numbers}",
            address = address("n"),
            at = at(&first_event),
            joined = joined("n"),
            id = id(&first_event),
            numbers = numbers(people),
        ),
        format!(
            "INSERT INTO signups (id, address, kind, at, via, source) \
             SELECT {id}, {address}, CASE WHEN {joined} THEN 'join' ELSE 'download' END, {at}, \
                 CASE n % 7 WHEN 0 THEN 'mcp' WHEN 1 THEN 'api' ELSE 'site' END, 'source ' || (n * n % {SOURCES}) \
             FROM {numbers}",
            id = id("n"),
            address = address(&person),
            joined = joined(&person),
            at = at("n"),
            numbers = numbers(events),
        ),
        "INSERT INTO counts (day, kind, via, name, times) \
         SELECT at / 86400000, kind, via, '', COUNT(*) FROM signups GROUP BY 1, 2, 3"
            .to_owned(),
        "INSERT INTO counts (day, kind, via, name, times) \
         SELECT at / 86400000, 'person', via, '', COUNT(*) FROM people \
         JOIN signups ON signups.address = people.address AND id = COALESCE(first_download, first_join) GROUP BY 1, 3"
            .to_owned(),
        "INSERT INTO sources (day, source, downloads, new_people, opt_ins, joins) \
         SELECT at / 86400000, source, SUM(CASE kind WHEN 'download' THEN 1 ELSE 0 END), COUNT(people.address), 0, \
             SUM(CASE kind WHEN 'join' THEN 1 ELSE 0 END) \
         FROM signups LEFT JOIN people ON people.address = signups.address AND id IN (first_download, first_join) GROUP BY 1, 2"
            .to_owned(),
    ];
    database.execute_in_bulk(&statements).await;
}

/// The address of a person of a database with this many people. Addresses are evenly spread over all numbers of 32 bits, so
/// that new ones get between them.
pub fn address(person: u64, people: u64) -> String {
    format!("{:08x}@example.com", person * spacing(people))
}

fn spacing(people: u64) -> u64 {
    (1 << 32) / people
}

/// Returns the first day with events, in days since 1970-01-01.
pub fn first_day() -> u64 {
    std::time::UNIX_EPOCH.elapsed().expect("a time after 1970").as_secs() / 86400 + 1 - DAYS
}

//! Startup time and idle memory.

use std::time::Instant;

use crate::load::get;
use crate::measure::{median, millis, resident_memory};
use crate::report::{Goal, Report, Unit};
use crate::service::{Database, Server};

const STARTS: usize = 11;
const IDLE_CONNECTIONS: usize = 10_000;

pub async fn run(report: &mut Report) {
    let database = Database::sqlite();
    drop(Server::start(&database));
    let mut durations = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        let server = Server::start(&database);
        get(server.address, "/").await;
        durations.push(start.elapsed());
    }
    report.record(
        "exec to the first response",
        Unit::Milliseconds,
        millis(median(durations)),
        Some(Goal::AtMost(50.0)),
    );
    let server = Server::start(&database);
    get(server.address, "/").await;
    let before = resident_memory(server.pid());
    report.record("memory after the first page", Unit::Mebibytes, before, Some(Goal::AtMost(20.0)));
    let mut connections = Vec::new();
    for _ in 0..IDLE_CONNECTIONS {
        connections.push(server.connect().await);
    }
    get(server.address, "/").await;
    let added = resident_memory(server.pid()) - before;
    let work = format!("memory for {IDLE_CONNECTIONS} silent connections");
    report.record(work, Unit::Mebibytes, added, Some(Goal::AtMost(150.0)));
}

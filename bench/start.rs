//! Startup time and idle memory.

use std::time::Instant;

use crate::load::{connect, get};
use crate::measure::{median, resident_memory, seconds};
use crate::service::{Database, Server};

const STARTS: usize = 11;
const IDLE_CONNECTIONS: usize = 10_000;

pub async fn run() {
    let database = Database::sqlite();
    drop(Server::start(&database));
    let mut durations = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        let server = Server::start(&database);
        get(server.address, "/");
        durations.push(start.elapsed());
    }
    println!("exec to first response, median of {STARTS}   {}", seconds(median(durations)));
    let server = Server::start(&database);
    get(server.address, "/");
    let before = resident_memory(server.pid());
    println!("memory after the first page           {:.1} MiB", mebibytes(before));
    let mut connections = Vec::new();
    for _ in 0..IDLE_CONNECTIONS {
        connections.push(connect(server.address).await);
    }
    get(server.address, "/");
    let added = mebibytes(resident_memory(server.pid()) - before);
    println!("added by {IDLE_CONNECTIONS} idle connections      {added:.1} MiB");
}

#[expect(clippy::cast_precision_loss, reason = "printed with one decimal")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

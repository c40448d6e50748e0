//! From exec to the first answer, and what memory it takes to wait for callers.

use std::time::Instant;

use crate::load::{connect, get};
use crate::measure::{median, memory, seconds};
use crate::service::{Database, Serving};

const STARTS: usize = 11;
const IDLE: usize = 10_000;

pub async fn run() {
    let database = Database::sqlite();
    drop(Serving::start(&database));
    let mut taken = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        let serving = Serving::start(&database);
        get(serving.address, "/");
        taken.push(start.elapsed());
    }
    println!("exec to first answer, the middle of {STARTS}  {}", seconds(median(taken)));
    let serving = Serving::start(&database);
    get(serving.address, "/");
    let before = memory(serving.id());
    println!("memory after the first page             {:.1} MiB", mebibytes(before));
    let mut waiting = Vec::new();
    for _ in 0..IDLE {
        waiting.push(connect(serving.address).await);
    }
    get(serving.address, "/");
    println!("{IDLE} silent connections more          {:.1} MiB", mebibytes(memory(serving.id()) - before));
}

#[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

//! Load generator: every client sends requests one after another on its own keep-alive connection.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::connection::{Connection, Transport};
use crate::measure::{cpu_time, median};
use crate::service::Server;

#[derive(Clone, Copy)]
pub struct LoadResult {
    pub requests_per_second: f64,
    pub p99: Duration,
    /// CPU time of the server processes in microseconds.
    pub cpu_per_request: f64,
}

/// Servers take turns in short rounds, so that a change of the machine's speed concerns all of them.
const ROUND: Duration = Duration::from_secs(1);
pub const ROUNDS: usize = 9;

/// Sends requests for the time of a round from `clients` concurrent clients, which are spread over the servers. `request`
/// returns the bytes of the next request. Every response must be a 200.
pub async fn load(servers: &[Server], clients: usize, request: impl Fn() -> String + Sync) -> LoadResult {
    let request = &request;
    let cpu_of_all = || servers.iter().map(|server| cpu_time(server.pid())).sum::<Duration>();
    let (start, cpu_before) = (Instant::now(), cpu_of_all());
    let client = async |server: &Server| {
        let (mut connection, mut latencies) = (server.connect().await, Vec::new());
        // At least one response, even if the machine stalls for a whole round.
        while start.elapsed() < ROUND || latencies.is_empty() {
            let request = request();
            let sent = Instant::now();
            connection.send(&request).await.expect_ok();
            latencies.push(sent.elapsed());
        }
        latencies
    };
    let mut latencies = join_all(servers.iter().cycle().take(clients).map(client)).await.concat();
    let (elapsed, cpu) = (start.elapsed(), cpu_of_all().saturating_sub(cpu_before));
    latencies.sort();
    let requests = f64::from(u32::try_from(latencies.len()).expect("a number of requests"));
    LoadResult {
        requests_per_second: requests / elapsed.as_secs_f64(),
        p99: *latencies.get(latencies.len() * 99 / 100).expect("responses"),
        cpu_per_request: cpu.as_secs_f64() * 1e6 / requests,
    }
}

/// Makes the nth request of a server that gets each request once, over several rounds.
pub fn numbered(request: impl Fn(u64) -> String) -> impl Fn() -> String {
    let next = AtomicU64::new(0);
    move || request(next.fetch_add(1, Ordering::Relaxed))
}

impl LoadResult {
    /// The CPU time of a request in each round.
    pub fn cpu_of(rounds: &[Self]) -> Vec<f64> {
        rounds.iter().map(|round| round.cpu_per_request).collect()
    }

    /// The requests per second in each round.
    pub fn rates_of(rounds: &[Self]) -> Vec<f64> {
        rounds.iter().map(|round| round.requests_per_second).collect()
    }

    /// The median of each figure by itself.
    pub fn median(rounds: &[Self]) -> Self {
        Self {
            requests_per_second: median(rounds.iter().map(|round| round.requests_per_second).collect()),
            p99: median(rounds.iter().map(|round| round.p99).collect()),
            cpu_per_request: median(rounds.iter().map(|round| round.cpu_per_request).collect()),
        }
    }
}

/// Requests one page and discards it.
pub async fn get(address: SocketAddr, path: &str) {
    let mut connection = Connection::open(address, &Transport::Plain).await;
    connection.send(&format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n")).await.expect_ok();
}

pub fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

impl std::fmt::Display for LoadResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { requests_per_second, p99, cpu_per_request } = self;
        let p99 = p99.as_secs_f64() * 1e3;
        write!(f, "{requests_per_second:>8.0}/s  {cpu_per_request:>6.1} µs CPU each  p99 {p99:.1} ms")
    }
}

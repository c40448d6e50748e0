//! Load generator: every client sends requests one after another on its own keep-alive connection.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::measure::{cpu_time, seconds};
use crate::service::Server;

pub struct LoadResult {
    pub requests_per_second: f64,
    pub p99: Duration,
    /// CPU time of the server process.
    pub cpu_per_request: Duration,
    /// Responses with a status other than 200.
    pub errors: u64,
}

/// Sends `requests` requests in total from `clients` concurrent clients. `request` returns the bytes of the nth request.
pub async fn load(server: &Server, clients: u64, requests: u64, request: impl Fn(u64) -> String + Sync) -> LoadResult {
    let (next, request, address) = (&AtomicU64::new(0), &request, server.address);
    let (start, cpu_before) = (Instant::now(), cpu_time(server.pid()));
    let client = |_| async move {
        let (mut connection, mut latencies, mut errors) = (connect(address).await, Vec::new(), 0);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= requests {
                return (latencies, errors);
            }
            let sent = Instant::now();
            errors += u64::from(send(&mut connection, &request(number)).await.0 != 200);
            latencies.push(sent.elapsed());
        }
    };
    let results = join_all((0..clients).map(client)).await;
    let (elapsed, cpu) = (start.elapsed(), cpu_time(server.pid()).saturating_sub(cpu_before));
    let mut latencies: Vec<_> = results.iter().flat_map(|(latencies, _)| latencies).copied().collect();
    latencies.sort();
    LoadResult {
        requests_per_second: f64::from(u32::try_from(requests).expect("a number of requests")) / elapsed.as_secs_f64(),
        p99: *latencies.get(latencies.len() * 99 / 100).expect("responses"),
        cpu_per_request: cpu / u32::try_from(requests).expect("a number of requests"),
        errors: results.iter().map(|(_, errors)| errors).sum(),
    }
}

/// Requests one page and discards it.
pub fn get(address: SocketAddr, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(fetch(address, &request)));
}

/// Sends one request on a new connection and returns the body of the response.
pub async fn fetch(address: SocketAddr, request: &str) -> Vec<u8> {
    let (status, body) = send(&mut connect(address).await, request).await;
    assert_eq!(status, 200, "{request}");
    body
}

pub fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub async fn connect(address: SocketAddr) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("TCP_NODELAY");
    BufReader::new(stream)
}

/// Sends a request and returns the status and body of the response.
async fn send(connection: &mut BufReader<TcpStream>, request: &str) -> (u16, Vec<u8>) {
    connection.write_all(request.as_bytes()).await.expect("a request sent");
    let (mut status, mut length, mut line) = (None, 0, String::new());
    loop {
        line.clear();
        connection.read_line(&mut line).await.expect("a response head");
        if line == "\r\n" {
            break;
        }
        if status.is_none() {
            status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        } else if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.expect("a body");
    (status.expect("a status"), body)
}

impl std::fmt::Display for LoadResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { requests_per_second, p99, cpu_per_request, errors } = self;
        let cpu = cpu_per_request.as_micros();
        write!(f, "{requests_per_second:>8.0}/s  {cpu:>4} µs CPU each  p99 {}", seconds(*p99))?;
        if *errors > 0 { write!(f, "  {errors} errors") } else { Ok(()) }
    }
}

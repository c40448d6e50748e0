//! Callers: each has a connection that it keeps, asks, waits for the answer, and asks again.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::measure::{processor_time, seconds};
use crate::service::Serving;

/// What became of all requests.
pub struct Outcome {
    pub a_second: f64,
    pub slowest_hundredth: Duration,
    /// Of the serving process, for each request.
    pub processor: Duration,
    /// Answers that were not 200.
    pub refused: u64,
}

/// Has so many callers make so many requests in all; `request` makes the request of a number.
pub async fn load(serving: &Serving, callers: u64, requests: u64, request: impl Fn(u64) -> String + Sync) -> Outcome {
    let (next, request, address) = (&AtomicU64::new(0), &request, serving.address);
    let (start, worked) = (Instant::now(), processor_time(serving.id()));
    let caller = |_| async move {
        let (mut connection, mut taken, mut refused) = (connect(address).await, Vec::new(), 0);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= requests {
                return (taken, refused);
            }
            let asked = Instant::now();
            refused += u64::from(ask(&mut connection, &request(number)).await.0 != 200);
            taken.push(asked.elapsed());
        }
    };
    let done = join_all((0..callers).map(caller)).await;
    let (elapsed, worked) = (start.elapsed(), processor_time(serving.id()).saturating_sub(worked));
    let mut taken: Vec<_> = done.iter().flat_map(|(taken, _)| taken).copied().collect();
    taken.sort();
    Outcome {
        a_second: f64::from(u32::try_from(requests).expect("a number of requests")) / elapsed.as_secs_f64(),
        slowest_hundredth: *taken.get(taken.len() * 99 / 100).expect("answers"),
        processor: worked / u32::try_from(requests).expect("a number of requests"),
        refused: done.iter().map(|(_, refused)| refused).sum(),
    }
}

/// Asks for one page and reads it.
pub fn get(address: SocketAddr, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(fetch(address, &request)));
}

/// What is answered with 200 to one request.
pub async fn fetch(address: SocketAddr, request: &str) -> Vec<u8> {
    let (status, body) = ask(&mut connect(address).await, request).await;
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
    stream.set_nodelay(true).expect("to send at once");
    BufReader::new(stream)
}

/// Status and body of the answer.
async fn ask(connection: &mut BufReader<TcpStream>, request: &str) -> (u16, Vec<u8>) {
    connection.write_all(request.as_bytes()).await.expect("to be sent");
    let (mut status, mut length, mut line) = (None, 0, String::new());
    loop {
        line.clear();
        connection.read_line(&mut line).await.expect("a head");
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

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { a_second, slowest_hundredth, processor, refused } = self;
        write!(f, "{a_second:>8.0}/s  {:>4} µs CPU each  p99 {}", processor.as_micros(), seconds(*slowest_hundredth))?;
        if *refused > 0 { write!(f, "  {refused} refused") } else { Ok(()) }
    }
}

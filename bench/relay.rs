//! A TCP relay that delays everything by a fixed time in each direction and does not limit bandwidth, as a network
//! between the service and its database does. It runs in its own process.
//!
//! The delay is the same for all connections, so chunks are due in the order in which they arrived, and one thread writes
//! all of them. Threads, because the timers of tokio count whole milliseconds.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::peer;
use crate::service::{Database, Server};

/// How much longer a round trip takes.
pub const ROUND_TRIP: Duration = Duration::from_millis(1);

/// Bytes for a connection, or nothing when its other side was closed.
struct Chunk {
    due: Instant,
    to: Arc<TcpStream>,
    bytes: Vec<u8>,
}

/// Starts a relay to the server of the database.
pub fn start(database: &Database) -> Server {
    let url = url::Url::parse(&database.url()).expect("a URL");
    let target = format!("{}:{}", url.host_str().expect("a host"), url.port().expect("a port"));
    peer::start_as("relay", &[&target])
}

/// Relays until the process is killed.
pub fn serve(address: &str, target: &str) {
    let listener = TcpListener::bind(address).expect("the address");
    let (queue, chunks) = channel();
    std::thread::spawn(move || deliver(&chunks));
    for client in listener.incoming() {
        let (client, server) = (client.expect("a client"), TcpStream::connect(target).expect("the target"));
        let [client, server] = [client, server].map(|stream| {
            stream.set_nodelay(true).expect("TCP_NODELAY");
            Arc::new(stream)
        });
        for (from, to) in [(&client, &server), (&server, &client)] {
            let (from, to, queue) = (Arc::clone(from), Arc::clone(to), queue.clone());
            std::thread::spawn(move || receive(&from, &to, &queue));
        }
    }
}

fn receive(mut from: &TcpStream, to: &Arc<TcpStream>, queue: &Sender<Chunk>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = from.read(&mut buffer).unwrap_or(0);
        let (due, bytes) = (Instant::now() + ROUND_TRIP / 2, buffer[..length].to_vec());
        if queue.send(Chunk { due, to: Arc::clone(to), bytes }).is_err() || length == 0 {
            return;
        }
    }
}

fn deliver(chunks: &Receiver<Chunk>) {
    for Chunk { due, to, bytes } in chunks {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if bytes.is_empty() || (&*to).write_all(&bytes).is_err() {
            let _ = to.shutdown(Shutdown::Both);
        }
    }
}

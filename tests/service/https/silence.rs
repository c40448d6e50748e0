//! Clients of https that say nothing, or take nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::wire::{PING, connect, connect_over, frame, preface, read_to_end, request};
use super::{https, identity};
use crate::harness::{Authority, PUBLIC_ADDRESSES, connect_from, in_network_namespace, on_one_database_with};

/// `SETTINGS_INITIAL_WINDOW_SIZE` of 0.
const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];

#[tokio::test]
async fn a_client_that_says_nothing_is_closed_before_the_handshake_after_it_and_after_an_answer() {
    let name = "https::silence::a_client_that_says_nothing_is_closed_before_the_handshake_after_it_and_after_an_answer";
    if !in_network_namespace(name).await {
        return;
    }
    let authority = Authority::new();
    let identity = identity(&authority);
    on_one_database_with(https(&identity), async |service| {
        let address = service.address();
        let silent = TcpStream::connect(address).expect("a connection");
        silent.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
        let mut ends = vec![std::thread::spawn(move || read_to_end(silent))];
        let preface = preface(&[]);
        for (protocol, first) in [("h2", &b""[..]), ("h2", &preface), ("http/1.1", b""), ("http/1.1", b"GET / HT")] {
            let mut connection = connect(address, &authority, protocol);
            connection.write_all(first).expect("a handshake");
            connection.flush().expect("a handshake");
            ends.push(std::thread::spawn(move || read_to_end(connection)));
        }
        // A request is answered, and then the client is idle. A local one would have more time.
        let stream = connect_from(PUBLIC_ADDRESSES[0], address).await.into_std().expect("a stream");
        stream.set_nonblocking(false).expect("a socket");
        let mut idle = connect_over(stream, &authority, "h2");
        idle.write_all(&[preface, request(1)].concat()).expect("a request");
        idle.flush().expect("a request");
        let answered = std::thread::spawn(move || read_to_end(idle));
        for end in ends {
            end.join().expect("a connection that is closed");
        }
        assert!(answered.join().expect("a connection that is closed").len() > 10_000, "the page came");
    })
    .await;
}

/// The client allows no byte of a response, which hyper would wait for without an end.
#[tokio::test]
async fn a_client_that_takes_nothing_of_a_response_is_closed() {
    let authority = Authority::new();
    let identity = identity(&authority);
    on_one_database_with(https(&identity), async |service| {
        let mut connection = connect(service.address(), &authority, "h2");
        connection.write_all(&[preface(NO_WINDOW), request(1)].concat()).expect("a request");
        connection.flush().expect("a request");
        let read = std::thread::spawn(move || read_to_end(connection)).join().expect("a connection that is closed");
        assert!(read.len() < 2000, "head and no body: {}", read.len());
    })
    .await;
}

/// Each ping is answered, which looked as if the client took the end of a response.
#[tokio::test]
async fn a_client_that_only_pings_is_closed() {
    let authority = Authority::new();
    let identity = identity(&authority);
    on_one_database_with(https(&identity), async |service| {
        let mut connection = connect(service.address(), &authority, "h2");
        connection.write_all(&preface(&[])).expect("a handshake");
        connection.flush().expect("a handshake");
        connection.sock.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
        let is_closed = move |_: u32| {
            let sent = connection.write_all(&frame(PING, 0, 0, &[0; 8])).and_then(|()| connection.flush());
            let is_pause = |error: &std::io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
            // Reads until nothing has come for a second.
            let mut bytes = [0; 1024];
            let end = std::iter::repeat_with(|| connection.read(&mut bytes)).find(|read| !matches!(read, Ok(1..)));
            sent.is_err() || !end.expect("an end").is_err_and(|error| is_pause(&error))
        };
        let closed = std::thread::spawn(move || (0..40).any(is_closed)).join();
        assert!(closed.expect("a client"), "still open after 40 seconds");
    })
    .await;
}

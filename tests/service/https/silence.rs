//! Clients of https that say nothing, or take nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::{HOST, https, identity};
use crate::harness::{Authority, on_one_database_with};

type Connection = StreamOwned<ClientConnection, TcpStream>;

/// Connects by TLS and offers one protocol.
fn connect(address: std::net::SocketAddr, authority: &Authority, protocol: &str) -> Connection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.path()).expect("a certificate")).expect("an authority");
    let mut config = ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let name = ServerName::try_from(HOST).expect("a name");
    let client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
    StreamOwned::new(client, stream)
}

/// Reads to the end. A connection that is never closed fails the test by the timeout of its socket.
fn read_to_end(mut connection: impl Read) -> Vec<u8> {
    let mut read = Vec::new();
    match connection.read_to_end(&mut read) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => panic!("never closed"),
        _ => read,
    }
}

/// The beginning of HTTP/2: the preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// `GET /` on stream 1, by the static table, with `:authority` as a literal.
fn request() -> Vec<u8> {
    let mut block = vec![0x82, 0x84, 0x87, 0x01, u8::try_from(HOST.len()).expect("a short name")];
    block.extend(HOST.as_bytes());
    let mut frame = vec![0, 0, u8::try_from(block.len()).expect("a short block"), 0x01, 0x05, 0, 0, 0, 1];
    frame.extend(block);
    frame
}

#[tokio::test]
async fn a_client_that_says_nothing_is_closed_before_and_after_the_handshake() {
    let authority = Authority::new();
    let identity = identity(&authority);
    on_one_database_with(https(&identity), async |service| {
        let address = service.address();
        let silent = TcpStream::connect(address).expect("a connection");
        silent.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
        let mut ends = vec![std::thread::spawn(move || read_to_end(silent))];
        for (protocol, first) in [("h2", &b""[..]), ("h2", PREFACE), ("http/1.1", b""), ("http/1.1", b"GET / HT")] {
            let mut connection = connect(address, &authority, protocol);
            connection.write_all(first).expect("a handshake");
            connection.flush().expect("a handshake");
            ends.push(std::thread::spawn(move || read_to_end(connection)));
        }
        // A request is answered, and then the client is idle.
        let mut idle = connect(address, &authority, "h2");
        idle.write_all(&[PREFACE, &request()].concat()).expect("a request");
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
        let no_window = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0";
        connection.write_all(&[&no_window[..], &request()].concat()).expect("a request");
        connection.flush().expect("a request");
        let read = std::thread::spawn(move || read_to_end(connection)).join().expect("a connection that is closed");
        assert!(read.len() < 2000, "head and no body: {}", read.len());
    })
    .await;
}

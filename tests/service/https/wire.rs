//! HTTP/2 frame by frame over TLS, for clients that no library would imitate.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::HOST;
use crate::harness::Authority;

pub type Connection = StreamOwned<ClientConnection, TcpStream>;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// Connects by TLS and offers one protocol.
pub fn connect(address: SocketAddr, authority: &Authority, protocol: &str) -> Connection {
    connect_over(TcpStream::connect(address).expect("a connection"), authority, protocol)
}

pub fn connect_over(stream: TcpStream, authority: &Authority, protocol: &str) -> Connection {
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
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
    stream.set_write_timeout(Some(Duration::from_mins(1))).expect("a timeout");
    StreamOwned::new(client, stream)
}

/// Reads to the end. A connection that is never closed fails the test by the timeout of its socket.
pub fn read_to_end(mut connection: impl Read) -> Vec<u8> {
    let mut read = Vec::new();
    match connection.read_to_end(&mut read) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => panic!("never closed"),
        _ => read,
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The beginning of HTTP/2: the preface and these settings.
pub fn preface(settings: &[u8]) -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(SETTINGS, 0, 0, settings)].concat()
}

/// The header block of `GET /`.
pub fn header_block() -> Vec<u8> {
    header_block_for("/")
}

/// The header block of a `GET`: by the static table, with `:path` and `:authority` as literals.
pub fn header_block_for(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x87];
    for (name, value) in [(0x04, path), (0x01, HOST)] {
        block.extend([name, u8::try_from(value.len()).expect("a short value")]);
        block.extend(value.as_bytes());
    }
    block
}

/// Reads a frame, and returns its kind.
pub fn read_frame(connection: &mut impl Read) -> u8 {
    let mut head = [0; 9];
    connection.read_exact(&mut head).expect("a frame");
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    connection.read_exact(&mut vec![0; length]).expect("its payload");
    head[3]
}

/// `GET /` on this stream.
pub fn request(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &header_block())
}

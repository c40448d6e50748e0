//! Raw bytes on a connection, for requests that no HTTP client would send.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::wait::WATCHDOG;

pub struct Connection(TcpStream);

impl Connection {
    pub const fn new(stream: TcpStream) -> Self {
        Self(stream)
    }

    pub async fn open(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.expect("a connection"))
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("to send");
    }

    /// Shuts down the sending side; responses can still be read.
    pub async fn end_sending(&mut self) {
        self.0.shutdown().await.expect("to close our side");
    }

    /// Reads until the server closes the connection.
    pub async fn read_to_end(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = timeout(WATCHDOG, self.0.read_to_end(&mut bytes)).await.expect("the connection to be closed");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads this many bytes.
    pub async fn read(&mut self, count: usize) {
        let mut bytes = vec![0; count];
        timeout(WATCHDOG, self.0.read_exact(&mut bytes)).await.expect("an answer in time").expect("more of the answer");
    }

    /// Reads up to and including `end`.
    pub async fn read_until(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(end.as_bytes()) {
            let byte =
                timeout(WATCHDOG, self.0.read_u8()).await.expect("an answer in time").expect("more of the answer");
            bytes.push(byte);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Sends a request and reads until the server closes the connection; it has to contain `Connection: close`, or be
/// framed so badly that the server closes anyway.
pub async fn raw(address: SocketAddr, request: impl AsRef<[u8]>) -> String {
    let mut connection = Connection::open(address).await;
    connection.send(request).await;
    connection.read_to_end().await
}

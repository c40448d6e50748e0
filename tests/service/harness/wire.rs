//! Bytes on a connection, for what no client would send.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::wait::WATCHDOG;

pub struct Connection(TcpStream);

impl Connection {
    pub async fn open(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.expect("a connection"))
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("to send");
    }

    /// Says that nothing more will be sent; answers can still be read.
    pub async fn end_sending(&mut self) {
        self.0.shutdown().await.expect("to close our side");
    }

    /// Everything until the other side closes.
    pub async fn read_to_end(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = timeout(WATCHDOG, self.0.read_to_end(&mut bytes)).await.expect("the connection to be closed");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Everything up to and including `end`.
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

/// Sends a whole request and reads until the other side closes; ask for `Connection: close`, or
/// rely on the service closing a connection whose framing is in doubt.
pub async fn raw(address: SocketAddr, request: impl AsRef<[u8]>) -> String {
    let mut connection = Connection::open(address).await;
    connection.send(request).await;
    connection.read_to_end().await
}

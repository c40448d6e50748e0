//! A TCP route to a server that can fall silent, as a host does that vanishes from the network: connections stay open, and nothing
//! is forwarded or answered any more.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Route {
    pub address: SocketAddr,
    is_silent: watch::Sender<bool>,
    /// The connections that were opened before it fell silent and that the client has not closed.
    open: Arc<AtomicUsize>,
}

impl Route {
    /// Forwards connections to `server`, such as `127.0.0.1:5432`.
    pub async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (is_silent, silence) = watch::channel(false);
        let (open, server) = (Arc::<AtomicUsize>::default(), server.to_owned());
        let counted = Arc::clone(&open);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *silence.borrow() {
                    tokio::spawn(discard(client));
                } else {
                    counted.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(forward(client, server.clone(), silence.clone(), Arc::clone(&counted)));
                }
            }
        });
        Self { address, is_silent, open }
    }

    pub fn fall_silent(&self) {
        self.is_silent.send_replace(true);
    }

    pub fn open_connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

async fn forward(mut client: TcpStream, server: String, mut silence: watch::Receiver<bool>, open: Arc<AtomicUsize>) {
    let mut server = TcpStream::connect(server).await.expect("the server");
    let fell_silent = tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => false,
        _ = silence.wait_for(|is_silent| *is_silent) => true,
    };
    if fell_silent {
        discard(client).await;
    }
    open.fetch_sub(1, Ordering::Relaxed);
}

/// Reads until the client closes the connection.
async fn discard(mut client: TcpStream) {
    let mut buffer = [0; 1024];
    while client.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
}

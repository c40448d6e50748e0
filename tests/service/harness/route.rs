//! A TCP route to a PostgreSQL server that behaves as a bad network does. It can fall silent: connections stay open, and nothing is
//! forwarded or answered any more. And it can hold back the answers to `BEGIN`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Forward,
    /// On each connection that sends `BEGIN`, nothing is answered any more until the behaviour changes.
    HoldBegin,
    Silent,
}

pub struct Route {
    pub address: SocketAddr,
    behaviour: watch::Sender<Behaviour>,
    /// The connections that were opened before it fell silent and that the client has not closed.
    open: Arc<AtomicUsize>,
}

impl Route {
    /// Forwards connections to `server`, such as `127.0.0.1:5432`.
    pub async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (behaviour, changes) = watch::channel(Behaviour::Forward);
        let (open, server) = (Arc::<AtomicUsize>::default(), server.to_owned());
        let counted = Arc::clone(&open);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *changes.borrow() == Behaviour::Silent {
                    tokio::spawn(discard(client));
                    continue;
                }
                let (server, changes, counted) = (server.clone(), changes.clone(), Arc::clone(&counted));
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    forward(client, &server, changes).await;
                    counted.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Self { address, behaviour, open }
    }

    pub fn fall_silent(&self) {
        self.behaviour.send_replace(Behaviour::Silent);
    }

    pub fn hold_answers_to_begin(&self) {
        self.behaviour.send_replace(Behaviour::HoldBegin);
    }

    pub fn forward_everything(&self) {
        self.behaviour.send_replace(Behaviour::Forward);
    }

    pub fn open_connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

/// Returns when the client has closed the connection, or the server has.
async fn forward(mut client: TcpStream, server: &str, mut changes: watch::Receiver<Behaviour>) {
    let mut server = TcpStream::connect(server).await.expect("the server");
    let (mut question, mut answer, mut holds) = (vec![0; 8192], vec![0; 8192], false);
    loop {
        tokio::select! {
            result = changes.changed() => {
                holds = false;
                if result.is_err() || *changes.borrow_and_update() == Behaviour::Silent {
                    return discard(client).await;
                }
            }
            read = client.read(&mut question) => {
                let Ok(count @ 1..) = read else { return };
                let begins = question[..count].windows(5).any(|word| word == b"BEGIN");
                holds |= begins && *changes.borrow() == Behaviour::HoldBegin;
                if server.write_all(&question[..count]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut answer), if !holds => {
                let Ok(count @ 1..) = read else { return };
                if client.write_all(&answer[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Reads until the client closes the connection.
async fn discard(mut client: TcpStream) {
    let mut buffer = [0; 1024];
    while client.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
}

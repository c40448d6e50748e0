//! A name server that answers with the input.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use porchlight::probe::{DnsFailure, MxStatus, NameServers};
use tokio::runtime::{Builder, Runtime};

/// The name that is looked up. The seeds contain it in their question.
const NAME: &str = "troupe.example";
/// The flags of a response of a recursive server, with the code for a name that does not exist.
const NO_SUCH_NAME: [u8; 2] = [0x81, 0x83];

pub struct Resolver {
    runtime: Runtime,
    servers: NameServers,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl Resolver {
    pub fn start() -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket opens");
        let address = socket.local_addr().expect("it has an address");
        let answer = Arc::new(Mutex::new(Vec::new()));
        let given = Arc::clone(&answer);
        std::thread::spawn(move || {
            let mut query = [0; 1500];
            while let Ok((length, client)) = socket.recv_from(&mut query) {
                respond(&socket, client, &query[..length], &given.lock().expect("no thread panics"));
            }
        });
        Self {
            runtime: Builder::new_current_thread().enable_all().build().expect("a runtime starts"),
            servers: NameServers::parse(&address.to_string()).expect("it is an address"),
            answer,
        }
    }

    /// Looks the name up, with this answer to every query. Its first two bytes become the id of the query.
    pub fn look_up(&self, answer: &[u8]) -> (Result<Vec<String>, DnsFailure>, Result<MxStatus, DnsFailure>) {
        *self.answer.lock().expect("no thread panics") = answer.to_vec();
        self.runtime.block_on(async { (self.servers.txt_records(NAME).await, self.servers.mx_status(NAME).await) })
    }
}

/// Sends the answer, and behind it one that ends the wait if the first is ignored.
fn respond(socket: &UdpSocket, client: SocketAddr, query: &[u8], answer: &[u8]) {
    let mut answer = answer.to_vec();
    let id = answer.len().min(2);
    answer[..id].copy_from_slice(&query[..id]);
    let mut last = query.to_vec();
    last[2..4].copy_from_slice(&NO_SUCH_NAME);
    for datagram in [answer, last] {
        // The client may have its answer already.
        let _ = socket.send_to(&datagram, client);
    }
}

//! A name server that answers with the input.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use porchlight::probe::{DnsFailure, MxStatus, NameServers};
use tokio::runtime::{Builder, Runtime};

/// The name that is looked up. The seeds contain it in their question.
const NAME: &str = "troupe.example";

pub struct Resolver {
    runtime: Runtime,
    servers: NameServers,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl Resolver {
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener opens");
        let address = listener.local_addr().expect("it has an address");
        let answer = Arc::new(Mutex::new(Vec::new()));
        let given = Arc::clone(&answer);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                respond(client, &given.lock().expect("no thread panics"));
            }
        });
        Self {
            runtime: Builder::new_current_thread().enable_all().build().expect("a runtime starts"),
            servers: NameServers::parse(&address.to_string()).expect("it is an address"),
            answer,
        }
    }

    /// Looks the name up, with this answer to every query.
    pub fn look_up(&self, answer: &[u8]) -> (Result<Vec<String>, DnsFailure>, Result<MxStatus, DnsFailure>) {
        *self.answer.lock().expect("no thread panics") = answer.to_vec();
        self.runtime.block_on(async { (self.servers.txt_records(NAME).await, self.servers.mx_status(NAME).await) })
    }
}

/// Reads the query and sends the answer, each with its length before it.
fn respond(mut client: TcpStream, answer: &[u8]) {
    let mut length = [0; 2];
    // The client may give up at any time.
    let _ = client.read_exact(&mut length);
    let _ = client.read_exact(&mut vec![0; u16::from_be_bytes(length).into()]);
    let answer = &answer[..answer.len().min(u16::MAX.into())];
    let length = u16::try_from(answer.len()).unwrap_or(u16::MAX);
    let _ = client.write_all(&[&length.to_be_bytes()[..], answer].concat());
}

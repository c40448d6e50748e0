//! A name server of the tests: dnsmasq, and a proxy in front of it for faults of the network.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

/// What the proxy does. It never forwards TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Forwards all datagrams.
    NoTcp,
    /// Sends other datagrams before the response.
    StrayResponses,
    /// Drops the first query of each kind.
    FirstLost,
    /// Drops all queries.
    AllLost,
}

/// Answers for the names below `example`, and refuses all others.
pub struct NameServer {
    process: Child,
    address: SocketAddr,
}

/// A record as an argument of dnsmasq.
pub fn txt(name: &str, text: &str) -> String {
    let strings: Vec<_> = text.as_bytes().chunks(255).map(String::from_utf8_lossy).collect();
    format!("--txt-record={name},{}", strings.join(","))
}

pub fn mx(name: &str, exchange: &str) -> String {
    format!("--mx-host={name},{exchange},10")
}

pub fn a(name: &str) -> String {
    format!("--host-record={name},127.0.0.1")
}

/// The target needs an address of its own.
pub fn cname(name: &str, target: &str) -> String {
    format!("--cname={name},{target}")
}

impl NameServer {
    pub fn start(records: &[String]) -> Self {
        std::iter::repeat_with(|| Self::try_start(records)).flatten().next().expect("a name server")
    }

    /// Returns `None` if another process took the port.
    fn try_start(records: &[String]) -> Option<Self> {
        // Debian installs it outside the search path of ordinary users.
        let program = Some("/usr/sbin/dnsmasq").filter(|path| Path::new(path).exists()).unwrap_or("dnsmasq");
        let address = UdpSocket::bind("127.0.0.1:0").expect("a socket").local_addr().expect("an address");
        let mut process = Command::new(program)
            .args(["--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--local=/example/"])
            .args(["--listen-address=127.0.0.1", "--bind-interfaces", &format!("--port={}", address.port())])
            .args(records)
            .stderr(Stdio::piped())
            .spawn()
            .expect("dnsmasq (Debian: dnsmasq-base)");
        let mut lines = BufReader::new(process.stderr.take().expect("its messages")).lines().map_while(Result::ok);
        let mut server = Self { process, address };
        let mut messages = Vec::new();
        while let Some(line) = lines.next() {
            if line.contains("started") {
                thread::spawn(move || lines.for_each(drop));
                return Some(server);
            }
            messages.push(line);
        }
        let _ = server.process.wait();
        assert!(messages.iter().any(|line| line.contains("in use")), "dnsmasq did not start: {messages:?}");
        None
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The address of a proxy in front of this server.
    pub fn address_behind(&self, fault: Fault) -> String {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let (address, server) = (socket.local_addr().expect("an address"), self.address);
        thread::spawn(move || forward(&socket, server, fault));
        address.to_string()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn forward(socket: &UdpSocket, server: SocketAddr, fault: Fault) {
    let upstream = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let (mut buffer, mut seen) = ([0; 4096], HashSet::new());
    loop {
        let (length, client) = socket.recv_from(&mut buffer).expect("a query");
        let query = buffer[..length].to_vec();
        // The id changes with each attempt.
        let first = seen.insert(query[2..].to_vec());
        if fault == Fault::AllLost || (fault == Fault::FirstLost && first) {
            continue;
        }
        upstream.send_to(&query, server).expect("to be sent");
        let length = upstream.recv(&mut buffer).expect("a response");
        let response = &buffer[..length];
        if fault == Fault::StrayResponses {
            let send = |socket: &UdpSocket, bytes: &[u8]| socket.send_to(bytes, client).expect("to be sent");
            let denial = denial(response);
            send(socket, &changed(&denial, 0));
            send(socket, &changed(&denial, 13));
            send(socket, b"nonsense");
            send(socket, &denial[..denial.len() / 2]);
            send(&stranger, &denial);
        }
        socket.send_to(response, client).expect("to be sent");
    }
}

/// The same response, but with the code NXDOMAIN.
fn denial(response: &[u8]) -> Vec<u8> {
    let mut denial = response.to_vec();
    denial[3] = denial[3] & 0xF0 | 3;
    denial
}

/// Byte 0 is part of the id, byte 13 the first letter of the name.
fn changed(bytes: &[u8], index: usize) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    changed[index] ^= 1;
    changed
}

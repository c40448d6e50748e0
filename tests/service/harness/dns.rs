//! A name server of the tests: dnsmasq, and one that says nothing.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

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

    /// The address of a name server that accepts connections and says nothing.
    pub fn silent() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("an address").to_string();
        thread::spawn(move || listener.incoming().flatten().collect::<Vec<_>>());
        address
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

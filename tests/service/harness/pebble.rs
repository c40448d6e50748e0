//! Pebble, a real ACME authority that validates, and the name server that it asks.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::certificates::{Authority, Identity};
use super::free_port::free_port;
use super::wait::wait_until;

pub struct Pebble {
    folder: tempfile::TempDir,
    /// Trusts the https of pebble itself.
    authority: Authority,
    identity: Identity,
    ports: Ports,
    name_server: Child,
    server: Option<Child>,
}

struct Ports {
    directory: u16,
    management: u16,
    dns: u16,
    /// Where it validates.
    http: u16,
    lifetime_seconds: u32,
}

impl Pebble {
    /// Starts the name server, for which every host has this address, and pebble, which validates at the port and issues
    /// certificates for so many seconds.
    pub async fn start(host_address: Ipv4Addr, http: u16, lifetime_seconds: u32) -> Self {
        let (dns, name_server_management) = (free_port(), free_port());
        let mut name_server = Command::new("pebble-challtestsrv");
        name_server.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""]);
        name_server.args(["-dns01", &format!("127.0.0.1:{dns}"), "-defaultIPv4", &host_address.to_string()]);
        name_server.args(["-management", &format!("127.0.0.1:{name_server_management}")]);
        let authority = Authority::new();
        let identity = authority.issue_to(&["localhost", "127.0.0.1"]);
        let mut pebble = Self {
            folder: tempfile::tempdir().expect("a folder"),
            authority,
            identity,
            ports: Ports { directory: free_port(), management: free_port(), dns, http, lifetime_seconds },
            name_server: silent(&mut name_server),
            server: None,
        };
        pebble.restart().await;
        pebble
    }

    /// Starts pebble anew. It forgets its accounts and has another root.
    pub async fn restart(&mut self) {
        self.stop();
        let Ports { directory, management, dns, http, lifetime_seconds } = self.ports;
        let configuration = self.folder.path().join("pebble.json");
        let settings = json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{directory}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": self.identity.certificate(),
            "privateKey": self.identity.key(),
            "httpPort": http,
            "tlsPort": 1,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": false,
            "certificateValidityPeriod": lifetime_seconds,
        } });
        std::fs::write(&configuration, settings.to_string()).expect("a file");
        let mut command = Command::new("pebble");
        command.arg("-config").arg(configuration).args(["-dnsserver", &format!("127.0.0.1:{dns}")]);
        command.env("PEBBLE_VA_NOSLEEP", "1");
        self.server = Some(silent(&mut command));
        for port in [directory, management] {
            wait_until("pebble", async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()).await;
        }
    }

    /// The authority goes away.
    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    pub fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.ports.directory)
    }

    /// The value for `acme_ca_file`.
    pub fn ca_file(&self) -> PathBuf {
        self.authority.path()
    }

    /// Writes the root of the certificates that it issues to a file.
    pub fn save_root(&self, path: &Path) {
        let url = format!("https://localhost:{}/roots/0", self.ports.management);
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--cacert"]).arg(self.ca_file()).arg("-o").arg(path).arg(url);
        assert!(curl.status().expect("curl").success());
    }
}

fn silent(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a program of pebble")
}

impl Drop for Pebble {
    fn drop(&mut self) {
        self.stop();
        let _ = self.name_server.kill();
        let _ = self.name_server.wait();
    }
}

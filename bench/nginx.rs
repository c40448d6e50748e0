//! nginx as a peer: sends the same bodies with the same headers, from files that it keeps open.

use std::fmt::Write;
use std::process::Command;

use tempfile::TempDir;

use crate::connection::Response;
use crate::service::{Server, free_address};

/// Headers that nginx writes itself. It adds `Server`, `Last-Modified` and `Connection`, which we do not send.
const OWN_HEADERS: [&str; 5] = ["content-length", "content-type", "date", "etag", "accept-ranges"];

/// A folder of files with the headers that each is sent with.
pub struct Files {
    folder: TempDir,
    locations: String,
}

impl Files {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), locations: String::new() }
    }

    /// Adds the body of a response as a file, to be sent with the headers of that response.
    pub fn add(&mut self, name: &str, response: &Response<'_>) {
        std::fs::write(self.folder.path().join(name), response.body).expect("a file");
        let content_type = response.header("content-type").expect("a content type");
        write!(self.locations, "location = /{name} {{ types {{}} default_type {};", quoted(content_type))
            .expect("memory");
        for (name, value) in response.head.lines().filter_map(|line| line.split_once(": ")) {
            if !OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                write!(self.locations, " add_header {name} {};", quoted(value)).expect("memory");
            }
        }
        self.locations.push_str(" }\n");
    }

    /// Starts nginx as a single process, which costs it the least CPU time. `listen` is what follows the address in `listen`.
    pub fn serve(&self, listen: &str, access_log: bool) -> Server {
        let (address, folder, locations) = (free_address(), self.folder.path().display(), &self.locations);
        let log = if access_log { format!("{folder}/access.log") } else { "off".to_owned() };
        let settings = format!(
            "daemon off; master_process off; pid {folder}/{port}.pid; error_log {folder}/error.log;
             events {{ worker_connections 1024; }}
             http {{
                 access_log {log}; server_tokens off;
                 sendfile on; tcp_nopush on; keepalive_requests 100000000; open_file_cache max=100;
                 client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
                 uwsgi_temp_path {folder}; scgi_temp_path {folder};
                 server {{ listen {address} {listen}; root {folder};\n{locations} }}
             }}",
            port = address.port()
        );
        let file = self.folder.path().join(format!("{}.conf", address.port()));
        std::fs::write(&file, settings).expect("a file");
        let mut command = Command::new("nginx");
        command.arg("-c").arg(file);
        Server::spawn(command, address)
    }
}

/// nginx would replace a `$` in any string, and has no way to write one.
fn quoted(value: &str) -> String {
    assert!(!value.contains('$'), "nginx cannot send {value}");
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

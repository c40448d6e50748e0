//! CPU time of the home page in four variants, compared with nginx serving the same bytes from a file.

use std::process::Command;

use crate::load::{LoadResult, fetch, load};
use crate::measure::{median, ratio};
use crate::service::{Database, Server, free_address};

const CLIENTS: u64 = 64;
const ROUNDS: u64 = 5;
const REQUESTS: u64 = 100_000;

const VARIANTS: [(&str, &str); 4] = [
    ("HTML", "accept: text/html\r\n"),
    ("Markdown", "accept: text/markdown\r\n"),
    ("HTML, br", "accept: text/html\r\naccept-encoding: br\r\n"),
    ("HTML, gzip", "accept: text/html\r\naccept-encoding: gzip\r\n"),
];

pub async fn run() {
    let database = Database::sqlite();
    let ours = Server::start(&database);
    for (index, (_, headers)) in VARIANTS.iter().enumerate() {
        let page = fetch(ours.address, &get("/", headers)).await;
        std::fs::write(database.folder().join(format!("variant{index}.html")), page).expect("a file");
    }
    let nginx = nginx(&database);
    println!("\n{REQUESTS} requests by {CLIENTS} clients, median of {ROUNDS} alternating rounds");
    for (index, (name, headers)) in VARIANTS.iter().enumerate() {
        let (mut rounds, path) = ([Vec::new(), Vec::new()], format!("/variant{index}.html"));
        for _ in 0..ROUNDS {
            rounds[0].push(load(&ours, CLIENTS, REQUESTS, |_| get("/", headers)).await);
            rounds[1].push(load(&nginx, CLIENTS, REQUESTS, |_| get(&path, "")).await);
        }
        let [ours, theirs] = rounds.each_ref().map(|rounds| cpu_micros(rounds));
        println!("{name:<12} {ours:>5.1} µs CPU per request, nginx {theirs:>5.1}: {}", ratio(ours, theirs));
    }
}

fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n")
}

fn cpu_micros(rounds: &[LoadResult]) -> f64 {
    assert!(rounds.iter().all(|result| result.errors == 0), "every response is the page");
    median(rounds.iter().map(|result| result.cpu_per_request.as_secs_f64() * 1e6).collect())
}

/// Starts nginx as a single process that serves the folder of the database and writes an access log.
fn nginx(database: &Database) -> Server {
    let (address, folder) = (free_address(), database.folder().display());
    let settings = format!(
        "daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
         events {{ worker_connections 1024; }}
         http {{
             access_log {folder}/access.log; types {{ text/html html; }}
             sendfile on; tcp_nopush on; keepalive_requests 100000000; open_file_cache max=100;
             client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
             uwsgi_temp_path {folder}; scgi_temp_path {folder};
             server {{ listen {address}; root {folder}; }}
         }}"
    );
    let file = database.folder().join("nginx.conf");
    std::fs::write(&file, settings).expect("a file");
    let mut command = Command::new("nginx");
    command.arg("-c").arg(file);
    Server::spawn(command, address)
}

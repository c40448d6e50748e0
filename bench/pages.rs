//! The home page in each of its forms, beside nginx that sends the same bytes from a file.

use std::process::Command;

use crate::load::{Outcome, fetch, load};
use crate::measure::{median, ratio};
use crate::service::{Database, Serving, free_address};

const CALLERS: u64 = 64;
const ROUNDS: u64 = 5;
const REQUESTS: u64 = 100_000;

const FORMS: [(&str, &str); 4] = [
    ("HTML", "accept: text/html\r\n"),
    ("Markdown", "accept: text/markdown\r\n"),
    ("HTML, br", "accept: text/html\r\naccept-encoding: br\r\n"),
    ("HTML, gzip", "accept: text/html\r\naccept-encoding: gzip\r\n"),
];

pub async fn run() {
    let database = Database::sqlite();
    let ours = Serving::start(&database);
    for (place, (_, headers)) in FORMS.iter().enumerate() {
        let page = fetch(ours.address, &get("/", headers)).await;
        std::fs::write(database.folder().join(format!("form{place}.html")), page).expect("a file");
    }
    let nginx = nginx(&database);
    println!("\n{REQUESTS} requests of {CALLERS} callers, the middle of {ROUNDS} rounds in turn");
    for (place, (name, headers)) in FORMS.iter().enumerate() {
        let (mut rounds, address) = ([Vec::new(), Vec::new()], format!("/form{place}.html"));
        for _ in 0..ROUNDS {
            rounds[0].push(load(&ours, CALLERS, REQUESTS, |_| get("/", headers)).await);
            rounds[1].push(load(&nginx, CALLERS, REQUESTS, |_| get(&address, "")).await);
        }
        let [ours, theirs] = rounds.each_ref().map(|rounds| processor(rounds));
        let share = ratio(ours, theirs);
        println!("{name:<12} {ours:>5.1} µs CPU a request, nginx {theirs:>5.1}: {share}");
    }
}

fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n")
}

fn processor(rounds: &[Outcome]) -> f64 {
    assert!(rounds.iter().all(|outcome| outcome.refused == 0), "every answer is the page");
    median(rounds.iter().map(|outcome| outcome.processor.as_secs_f64() * 1e6).collect())
}

/// One process that serves the folder of the database and keeps a log, as the service does.
fn nginx(database: &Database) -> Serving {
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
    Serving::spawn(command, address)
}

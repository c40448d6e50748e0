//! CPU time of two pages in four variants, compared with nginx sending the same bytes from a file: with an access log, as
//! ours has, and without one.

use crate::load::{Connection, LoadResult, ROUNDS, load};
use crate::nginx;
use crate::report::{Goal, Report, Unit};
use crate::service::{Database, Server};

const CLIENTS: usize = 64;

/// A page of average size, and the largest that visitors come for.
const PAGES: [(&str, &str); 2] = [("about page", "/about"), ("home page", "/")];

const VARIANTS: [(&str, &str); 4] = [
    ("HTML", "accept: text/html\r\n"),
    ("Markdown", "accept: text/markdown\r\n"),
    ("HTML, br", "accept: text/html\r\naccept-encoding: br\r\n"),
    ("HTML, gzip", "accept: text/html\r\naccept-encoding: gzip\r\n"),
];

/// How clients reach the servers.
struct Transport {
    name: &'static str,
    /// Settings of ours.
    arguments: &'static [&'static str],
    /// Parameters of nginx's `listen`.
    listen: &'static str,
}

const TRANSPORTS: [Transport; 1] = [Transport { name: "HTTP/1.1", arguments: &["--ops-listen", "off"], listen: "" }];

pub async fn run(report: &mut Report) {
    for transport in TRANSPORTS {
        run_over(report, &transport).await;
    }
}

async fn run_over(report: &mut Report, transport: &Transport) {
    let database = Database::sqlite();
    let ours = Server::start_with(&database, transport.arguments);
    let mut files = nginx::Files::new();
    let variants = || PAGES.iter().flat_map(|page| VARIANTS.iter().map(move |variant| (page, variant))).enumerate();
    for (index, ((_, path), (_, headers))) in variants() {
        let mut connection = Connection::open(ours.address).await;
        files.add(&format!("variant{index}"), &connection.send(&get(path, headers)).await.expect_ok());
    }
    let nginx = |access_log| files.serve(transport.listen, access_log);
    let peers = [("nginx", nginx(true)), ("nginx without a log", nginx(false))];
    println!("\n{}, {CLIENTS} clients, median of {ROUNDS} alternating rounds", transport.name);
    for (index, ((page, path), (variant, headers))) in variants() {
        let (ours, request) = (std::slice::from_ref(&ours), get(path, headers));
        let path = format!("/variant{index}");
        let sizes = [response_size(&ours[0], &request).await, response_size(&peers[0].1, &get(&path, "")).await];
        println!("\n## {page}, {variant}: {} bytes of head and body, nginx {}", sizes[0], sizes[1]);
        let (mut rounds, mut rounds_of_peers) = (Vec::new(), [Vec::new(), Vec::new()]);
        for _ in 0..ROUNDS {
            rounds.push(load(ours, CLIENTS, || request.clone()).await);
            for ((_, peer), rounds) in peers.iter().zip(&mut rounds_of_peers) {
                rounds.push(load(std::slice::from_ref(peer), CLIENTS, || get(&path, headers)).await);
            }
        }
        let cpu = LoadResult::median(&rounds).cpu_per_request;
        for ((peer, _), rounds) in peers.iter().zip(&rounds_of_peers) {
            let (theirs, work) = (LoadResult::median(rounds).cpu_per_request, format!("{page}, {variant}"));
            report.compare(work, Unit::CpuMicros, cpu, (peer, theirs), Some(Goal::AtMost(1.0)));
        }
    }
}

fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n")
}

async fn response_size(server: &Server, request: &str) -> usize {
    let mut connection = Connection::open(server.address).await;
    let response = connection.send(request).await.expect_ok();
    response.head.len() + response.body.len()
}

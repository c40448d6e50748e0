//! CPU time of two pages in four variants, compared with nginx sending the same bytes from a file: with an access log, as
//! ours has, and without one. The larger page is sent over TLS as well, with the same certificate.

use crate::certificate::Certificate;
use crate::connection::Transport;
use crate::load::{LoadResult, ROUNDS, load};
use crate::nginx;
use crate::report::{Goal, Report, Unit};
use crate::service::{Database, Server};

const CLIENTS: usize = 64;

type Page = (&'static str, &'static str);

/// A page of average size, and the largest that visitors come for.
const ABOUT: Page = ("about page", "/about");
const HOME: Page = ("home page", "/");

const VARIANTS: [(&str, &str); 4] = [
    ("HTML", "accept: text/html\r\n"),
    ("Markdown", "accept: text/markdown\r\n"),
    ("HTML, br", "accept: text/html\r\naccept-encoding: br\r\n"),
    ("HTML, gzip", "accept: text/html\r\naccept-encoding: gzip\r\n"),
];

/// How clients reach the servers.
struct Link {
    /// Added to the names of the figures.
    suffix: &'static str,
    transport: Transport,
    /// Settings of ours.
    arguments: Vec<String>,
    /// What follows the address in nginx's `listen`.
    listen: String,
}

pub async fn run(report: &mut Report) {
    let certificate = Certificate::new();
    run_over(report, &[ABOUT, HOME], Link::plain()).await;
    run_over(report, &[HOME], Link::tls(&certificate)).await;
    run_over(report, &[HOME], Link::http2(&certificate)).await;
}

impl Link {
    fn plain() -> Self {
        Self { suffix: "", transport: Transport::Plain, arguments: Vec::new(), listen: String::new() }
    }

    fn tls(certificate: &Certificate) -> Self {
        let transport = Transport::Tls(certificate.connector("http/1.1"));
        Self::with_certificate(", TLS", transport, certificate, "ssl")
    }

    fn http2(certificate: &Certificate) -> Self {
        let transport = Transport::Http2(certificate.connector("h2"));
        Self::with_certificate(", TLS, HTTP/2", transport, certificate, "ssl http2")
    }

    fn with_certificate(suffix: &'static str, transport: Transport, certificate: &Certificate, listen: &str) -> Self {
        let [chain, key] = [certificate.certificate(), certificate.key()].map(|path| path.display().to_string());
        let listen = format!("{listen}; ssl_certificate {chain}; ssl_certificate_key {key}");
        let arguments = ["--base-url", "https://localhost", "--tls-cert", &chain, "--tls-key", &key];
        Self { suffix, transport, arguments: arguments.map(str::to_owned).to_vec(), listen }
    }
}

async fn run_over(report: &mut Report, pages: &[Page], link: Link) {
    let Link { suffix, transport, arguments, listen } = link;
    let database = Database::sqlite();
    let arguments = ["--ops-listen", "off"].into_iter().chain(arguments.iter().map(String::as_str));
    let ours = Server::start_with(&database, &arguments.collect::<Vec<_>>()).over(transport.clone());
    let mut files = nginx::Files::new();
    let variants = || pages.iter().flat_map(|page| VARIANTS.iter().map(move |variant| (page, variant))).enumerate();
    for (index, ((_, path), (_, headers))) in variants() {
        let mut connection = ours.connect().await;
        files.add(&format!("variant{index}"), &connection.send(&get(path, headers)).await.expect_ok());
    }
    let nginx = |access_log| files.serve(&listen, access_log).over(transport.clone());
    let peers = [("nginx", nginx(true), 1.0), ("nginx without a log", nginx(false), 1.1)];
    println!("\n{CLIENTS} clients, median of {ROUNDS} alternating rounds");
    for (index, ((page, path), (variant, headers))) in variants() {
        let (ours, request) = (std::slice::from_ref(&ours), get(path, headers));
        let path = format!("/variant{index}");
        let sizes = [response_size(&ours[0], &request).await, response_size(&peers[0].1, &get(&path, "")).await];
        println!("\n## {page}, {variant}{suffix}: {} bytes of head and body, nginx {}", sizes[0], sizes[1]);
        let (mut rounds, mut rounds_of_peers) = (Vec::new(), [Vec::new(), Vec::new()]);
        for _ in 0..ROUNDS {
            rounds.push(load(ours, CLIENTS, || request.clone()).await);
            for ((_, peer, _), rounds) in peers.iter().zip(&mut rounds_of_peers) {
                rounds.push(load(std::slice::from_ref(peer), CLIENTS, || get(&path, headers)).await);
            }
        }
        let cpu = LoadResult::cpu_of(&rounds);
        for ((peer, _, goal), rounds) in peers.iter().zip(&rounds_of_peers) {
            let (theirs, work) = (LoadResult::cpu_of(rounds), format!("{page}, {variant}{suffix}"));
            report.compare(work, Unit::CpuMicros, &cpu, (peer, &theirs), Some(Goal::AtMost(*goal)));
        }
    }
}

fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n")
}

async fn response_size(server: &Server, request: &str) -> usize {
    let mut connection = server.connect().await;
    let response = connection.send(request).await.expect_ok();
    response.head.len() + response.body.len()
}

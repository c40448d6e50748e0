//! Benchmarks of the release build, compared with peers measured in the same run.
//!
//! `cargo bench` runs most of them, `cargo bench -- pages mcp` those that are named. A benchmark does not pass or fail: it
//! prints figures for people to read, and they depend on the machine.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark stops on any error, and prints its figures")]

mod certificate;
mod chart;
mod connection;
mod curves;
mod fill;
#[path = "../tests/service/harness/free_port.rs"]
mod free_port;
mod growth;
mod import;
mod instances;
mod load;
mod machine;
mod mcp;
mod measure;
mod nginx;
mod pages;
mod peer;
#[path = "../tests/service/harness/postgres.rs"]
mod postgres;
mod relay;
mod report;
mod service;
mod start;
mod statistics;
mod writes;

use std::time::Instant;

/// PostgreSQL with its default settings, so that commits are durable.
const POSTGRES_OPTIONS: &[&str] = &[];

/// Where the folder of PostgreSQL is created: on disk.
fn postgres_parent() -> std::path::PathBuf {
    std::env::temp_dir()
}

/// In the order in which they run and are listed. The last two fill large databases and run only if they are named.
const NAMES: [&str; 8] = ["start", "pages", "mcp", "writes", "instances", "import", "statistics", "growth"];
const BY_DEFAULT: usize = 6;

const USAGE: &str = "usage: cargo bench -- [NAME...] [--people N] [--write-docs]";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["peer", address, url, connections] => serve(peer::serve(address, url, connections)),
        ["mcp-peer", address, content] => serve(mcp::serve(address, content)),
        ["relay", address, target] => relay::serve(address, target),
        _ => run(&arguments),
    }
}

/// Peers may use all cores, as the service does.
fn serve(peer: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(peer);
}

/// One thread sends the load of all clients and gets many responses at once. More would take time from the servers.
#[tokio::main(flavor = "current_thread")]
async fn run(arguments: &[String]) {
    let Some(Selection { names, people, write_docs }) = parse(arguments) else {
        println!("{USAGE}\nNames: {}", NAMES.join(", "));
        std::process::exit(2);
    };
    println!("{}", machine::machine());
    let mut report = report::Report::default();
    for name in names {
        let start = Instant::now();
        report.begin(name);
        match name {
            "start" => start::run(&mut report).await,
            "pages" => pages::run(&mut report).await,
            "mcp" => mcp::run(&mut report).await,
            "writes" => writes::run(&mut report).await,
            "instances" => instances::run(&mut report).await,
            "import" => import::run(&mut report).await,
            "statistics" => statistics::run(&mut report).await,
            _ => growth::run(&mut report, people).await,
        }
        println!("\n{name} took {:.0} s", start.elapsed().as_secs_f64());
    }
    if write_docs {
        report.write_docs(&NAMES);
    }
}

struct Selection {
    names: Vec<&'static str>,
    /// The size of the largest database of `growth`.
    people: u64,
    write_docs: bool,
}

fn parse(arguments: &[String]) -> Option<Selection> {
    let mut selection = Selection { names: Vec::new(), people: 10_000_000, write_docs: false };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo adds it.
            "--bench" => {}
            "--people" => selection.people = arguments.next()?.parse().ok()?,
            "--write-docs" => selection.write_docs = true,
            name => selection.names.push(NAMES.into_iter().find(|known| *known == name)?),
        }
    }
    if selection.names.is_empty() {
        selection.names.extend(&NAMES[..BY_DEFAULT]);
    }
    Some(selection)
}

//! Benchmarks of the release build, compared with peers measured in the same run.
//!
//! `cargo bench` runs all of them, `cargo bench -- statistics` one. A benchmark does not pass or fail: it prints figures
//! for people to read, and they depend on the machine.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark stops on any error, and prints its figures")]

mod growth;
mod import;
mod load;
mod mcp;
mod measure;
mod pages;
mod peer;
#[path = "../tests/service/harness/postgres.rs"]
mod postgres;
mod service;
mod start;
mod statistics;
mod writes;

/// PostgreSQL with its default settings, so that commits are durable.
const POSTGRES_OPTIONS: &[&str] = &[];

/// Where the folder of PostgreSQL is created: on disk.
fn postgres_parent() -> std::path::PathBuf {
    std::env::temp_dir()
}

const NAMES: [&str; 7] = ["start", "pages", "mcp", "writes", "import", "statistics", "growth"];

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let [name, address, argument] = std::array::from_fn(|_| arguments.next().unwrap_or_default());
    match name.as_str() {
        "peer" => return peer::serve(&address, &argument).await,
        "mcp-peer" => return mcp::serve(&address, &argument).await,
        _ => {}
    }
    // Cargo adds flags such as --bench.
    let selected: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if let Some(unknown) = selected.iter().find(|name| !NAMES.contains(&name.as_str())) {
        println!("Unknown benchmark {unknown}. Available: {}.", NAMES.join(", "));
        return;
    }
    for name in NAMES.into_iter().filter(|name| selected.is_empty() || selected.iter().any(|selected| selected == name))
    {
        println!("\n# {name}");
        match name {
            "start" => start::run().await,
            "pages" => pages::run().await,
            "mcp" => mcp::run().await,
            "writes" => writes::run().await,
            "import" => import::run().await,
            "statistics" => statistics::run().await,
            _ => growth::run().await,
        }
    }
}

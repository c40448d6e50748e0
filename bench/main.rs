//! How fast the real program is, beside something measured in the same run.
//!
//! `cargo bench` runs everything, `cargo bench -- statistics` one of them. Nothing here passes or fails: the figures are
//! for people to read, and hold for the machine they were measured on.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark that cannot go on stops, and tells figures")]

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

/// PostgreSQL as it comes: what is confirmed is on disk.
const POSTGRES_OPTIONS: &[&str] = &[];

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
    // Cargo adds options of its own, such as --bench.
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if let Some(unknown) = asked.iter().find(|name| !NAMES.contains(&name.as_str())) {
        println!("There is no benchmark named {unknown}. There are: {}.", NAMES.join(", "));
        return;
    }
    for name in NAMES.into_iter().filter(|name| asked.is_empty() || asked.iter().any(|asked| asked == name)) {
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

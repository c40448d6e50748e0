//! The service as its clients see it, on both databases.
//!
//! One file per subject. A missing database fails the tests; nothing is skipped.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "this is how tests fail and say where"
)]

mod addresses;
mod assets;
mod backup;
mod bodies;
mod check;
mod clients;
mod configuration;
mod confirmations;
mod connections;
mod contact;
mod counts;
mod database_hosts;
mod desk;
mod discovery;
mod download;
mod forms;
mod guidance;
mod harness;
mod health;
mod https;
mod images;
mod inbox;
mod languages;
mod large_lists;
mod left_out;
mod letters;
mod lifecycle;
mod links;
mod logs;
mod look;
mod mail;
mod mail_key;
mod mcp;
mod mistakes;
mod moving;
mod new_site;
mod opening;
mod ops;
mod outages;
mod own_pages;
mod pages;
mod people;
mod problems;
mod readers;
mod releases;
mod settings;
mod site;
mod stats;
mod stopping;
mod storage;
mod stored_rows;
mod telling;
mod terminal;
mod unsubscribe;
mod update_checks;
mod versions;
mod waitlist;

/// Without fsync, as no test cuts the power, and without a vacuum that keeps a template busy.
const POSTGRES_OPTIONS: &[&str] = &["-F", "-c", "autovacuum=off"];

/// Where the folder of PostgreSQL is created.
fn postgres_parent() -> &'static std::path::Path {
    &harness::folder::PARENT
}

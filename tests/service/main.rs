//! The service as its callers see it, on both databases.
//!
//! One file a subject. A database that is missing fails the tests; nothing is skipped.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "this is how tests fail and say where"
)]

mod addresses;
mod backup;
mod bodies;
mod check;
mod configuration;
mod connections;
mod contact;
mod counts;
mod discovery;
mod download;
mod forms;
mod harness;
mod images;
mod inbox;
mod letters;
mod lifecycle;
mod links;
mod mail;
mod mcp;
mod moving;
mod opening;
mod ops;
mod outages;
mod pages;
mod people;
mod problems;
mod releases;
mod settings;
mod site;
mod stats;
mod storage;
mod terminal;
mod unsubscribe;
mod waitlist;

/// A test that cuts the power would need to wait for the disk; none does.
const POSTGRES_OPTIONS: &[&str] = &["-F"];

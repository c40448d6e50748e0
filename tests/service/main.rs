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
mod discovery;
mod download;
mod forms;
mod harness;
mod images;
mod leaving;
mod letters;
mod lifecycle;
mod links;
mod mail;
mod mcp;
mod moving;
mod outages;
mod pages;
mod problems;
mod releases;
mod settings;
mod site;
mod storage;
mod waitlist;

//! The service as its callers see it, on both databases.
//!
//! One file a subject. A database that is missing fails the tests; nothing is skipped.

#![expect(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "this is how tests fail and say where")]

mod bodies;
mod connections;
mod contact;
mod discovery;
mod download;
mod harness;
mod lifecycle;
mod links;
mod mcp;
mod pages;
mod problems;
mod settings;
mod storage;
mod waitlist;

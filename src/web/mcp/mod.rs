//! The MCP server: Streamable HTTP without state, one JSON-RPC message a POST.

mod client;
mod endpoint;
mod message;
mod origin;
mod tools;

pub(crate) use client::Client;
pub(crate) use endpoint::{ServerInfo, endpoint};
pub(crate) use tools::listing;

/// The revisions of the protocol that we speak, newest first.
pub(crate) const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
pub(crate) const PATH: &str = "/mcp";

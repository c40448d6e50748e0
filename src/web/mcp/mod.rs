//! The MCP server: Streamable HTTP without sessions, one JSON-RPC message per POST.

mod calls;
pub(crate) mod endpoint;
mod message;
pub(crate) mod results;
pub(crate) mod server_info;
pub(crate) mod tools;

//! Everything that speaks HTTP: floor 3.
//!
//! Decodes requests into checked values, calls an action, and dresses what comes back. No rule of
//! the service is decided here, and nothing here knows SQL.

mod api;
mod app;
mod body;
mod discovery;
mod fields;
mod forms;
mod headers;
mod http_date;
mod json;
mod mcp;
mod metrics;
mod multipart;
mod negotiate;
pub mod ops;
mod pages;
mod pipeline;
mod problem;
mod ranges;
mod reference;
mod releases;
mod representation;
mod routes;
mod shape;
mod unsubscribe;

pub use app::{App, try_making};
pub use pipeline::handle;
pub use routes::router;

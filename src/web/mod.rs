//! Everything that speaks HTTP: floor 3.
//!
//! Decodes requests into checked values, calls an action, and dresses what comes back. No rule of
//! the service is decided here, and nothing here knows SQL.

mod api;
mod app;
mod body;
mod discovery;
mod exchange;
mod fields;
mod forms;
mod headers;
mod json;
mod leaving;
mod mcp;
mod negotiate;
mod pages;
mod problem;
mod reference;
mod representation;
mod routes;
mod shape;

pub use app::App;
pub use exchange::exchange;
pub use routes::router;

//! The HTTP layer: parses requests into domain types, calls an action, and encodes the result.
//!
//! Rules of the service are decided in `actions`. Nothing here knows SQL. `tests/layers.rs` holds the
//! order of the modules.

mod allowed_methods;
mod api;
mod app;
mod body;
mod built_site;
pub mod checks;
mod dashboard;
mod desk;
mod discovery;
mod endpoints;
mod fallback;
mod fields;
mod forms;
mod headers;
mod initiator;
mod json;
mod letters;
mod limits;
mod log;
mod mcp;
mod metrics;
mod negotiate;
pub mod ops;
mod pipeline;
mod problem;
mod ranges;
mod redirect;
mod reference;
mod refusal;
mod releases;
mod representation;
mod response;
mod routes;
mod served;
mod shape;
mod shell;
mod tokens;
mod wrong_tokens;

pub use app::{App, AppState};
pub use body::discard_body;
pub use limits::{ClientSlot, OverLimit, WaitForPlace};
pub(crate) use metrics::Metrics;
pub use pipeline::{Router, handle, record_refused_head, router};
pub use redirect::redirect_to_https;

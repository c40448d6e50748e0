//! The life of the process: listeners, background tasks and a graceful shutdown. Layer 4.
//!
//! It starts everything and stops everything; what a request or a task does is decided in the layers below.

mod accept;
mod background;
mod certificate_reload;
mod client_stream;
mod connection_timeouts;
mod context;
mod failure;
mod http1;
mod http2;
mod listeners;
mod mailing;
mod read_body;
mod running;
mod task_supervisor;

pub use failure::ServeFailure;
pub use listeners::notify_service_manager;
pub use running::{RunningService, start};

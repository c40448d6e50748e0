//! Limits per client: which client sent a request, and how many requests and connections it may have.

mod counts;
mod forwarding_headers;
mod requests_and_connections;

pub use counts::{ClientSlot, WaitForPlace};
pub(crate) use forwarding_headers::FORWARDING_HEADERS;
pub(crate) use requests_and_connections::ClientLimits;
pub use requests_and_connections::OverLimit;

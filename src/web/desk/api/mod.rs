//! What programs of the makers change over HTTP with a token.

pub(super) mod parameters;
pub(in crate::web) mod problem;
mod releases;
mod requests;

pub(crate) use requests::{NOTES_ROUTE, RELEASE_ROUTE, RELEASES};
pub(super) use requests::{is_route, respond};

//! The desk: what programs of the makers change over HTTP with a token, on the ops listener, and at `base_url` if `desk` says so.

mod parameters;
mod problem;
mod releases;
mod requests;

pub(crate) use requests::{NOTES_ROUTE, RELEASE_ROUTE, RELEASES, is_below, public, respond};

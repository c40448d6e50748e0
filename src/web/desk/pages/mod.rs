//! The pages of the desk, for makers who are signed in.

mod activity;
mod failure;
mod form;
mod overview;
mod routes;
mod sign_in;
mod site;
mod visit;

pub(super) use routes::respond;

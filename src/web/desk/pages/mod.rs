//! The pages of the desk, for makers who are signed in.

mod activity;
mod confirm;
mod failure;
mod form;
mod inbox;
mod letters;
mod overview;
mod pager;
mod people;
mod release;
mod release_form;
mod releases;
mod routes;
mod sign_in;
mod site;
mod visit;

pub(super) use routes::respond;

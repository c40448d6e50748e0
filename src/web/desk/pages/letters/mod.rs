//! Letters: written as drafts, tested, sent by the service, stopped, gone on with.

mod draft;
mod draft_form;
mod list;
mod sending;

pub(super) use draft::{ask_to_delete, create, delete, editor, image, preview, remove_image, save};
pub(super) use list::page;
pub(super) use sending::{ask, begin, go_on, progress, recipients, stop};

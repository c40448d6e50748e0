//! Letters: written as drafts, tested, sent by the service, stopped, gone on with.

mod draft;
mod draft_form;
mod list;
mod sending;
mod shown;

pub(super) use draft::{ask_to_delete, create, delete, editor, image, preview, remove_image, save};
pub(super) use list::page;
pub(super) use sending::{ask, begin, copy, go_on, progress, recipients, sent_image, sent_letter, stop};

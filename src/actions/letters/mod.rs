//! The monthly letter: sending, the links in it, and undeliverable copies.

mod bounces;
mod copies;
mod drafts;
mod links;
mod of_service;
mod opt_ins;
mod rejected_mailboxes;
mod run;
mod send;

pub use bounces::{BounceOutcome, UnchangedReason, record_bounce};
pub use copies::{TestCopyFailure, letter_settings, placeholder, render_sample, send_test_copy};
pub use drafts::create_draft;
pub use links::{can_unsubscribe, confirm_opt_in, confirmation_link, decline_opt_in, unsubscribe};
pub use of_service::{LettersOfService, send_by_service, stop_letter};
pub use opt_ins::opt_in_sentences;
pub use run::{LetterEnd, LetterEvent, run_letter};
pub use send::{LetterFailure, LetterSender, LetterStep, compose_copy, new_bounce_tag};

//! The monthly letter: sending, the links in it, and undeliverable copies.

mod bounces;
mod links;
mod opt_ins;
mod rejected_mailboxes;
mod send;

pub use bounces::{BounceOutcome, UnchangedReason, record_bounce};
pub use links::{can_unsubscribe, confirm_opt_in, confirmation_link, decline_opt_in, unsubscribe};
pub use opt_ins::opt_in_sentences;
pub use send::{LetterFailure, LetterSender, LetterStep, compose_copy, new_bounce_tag};

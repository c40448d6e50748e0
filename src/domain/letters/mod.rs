//! The monthly letter, the links in it, and what comes back as undeliverable.

mod bounce_verdict;
mod letter;

pub use bounce_verdict::{Bounce, BounceAddress, BounceTag, RecipientReport, StatusCode, is_mailbox_rejection};
pub use letter::{
    CONFIRMATION_PATH, ConfirmationToken, Letter, LetterCounts, LinkState, RandomToken, UNSUBSCRIBE_PATH,
    UnsubscribeKind, UnsubscribeToken,
};

//! The monthly letter, the links in it, and what comes back as undeliverable.

mod bounce;
mod letter;

pub use bounce::{Bounce, BounceAddress, BounceTag, RecipientReport, StatusCode};
pub use letter::{
    CONFIRMATION_PATH, ConfirmationToken, Letter, LetterCounts, LinkState, RandomToken, UNSUBSCRIBE_PATH,
    UnsubscribeKind, UnsubscribeToken,
};

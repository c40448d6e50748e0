//! The monthly letter, the links in it, and what comes back as undeliverable.

mod bounce;
mod letter;
mod links;

pub use bounce::{Bounce, BounceAddress, BounceTag, RecipientReport, StatusCode};
pub use letter::{Letter, LetterCounts};
pub use links::{
    CONFIRMATION_PATH, ConfirmationToken, LinkState, LinkToken, UNSUBSCRIBE_PATH, UnsubscribeKind, UnsubscribeToken,
};

//! The monthly letter, the links in it, and what comes back as undeliverable.

mod archive;
mod asked_mailbox;
mod bounce_verdict;
mod draft;
mod forecast;
mod image;
mod letter;
mod list_id;
mod recipient_list;

pub use archive::{ArchivedLetter, LETTERS_PATH, letter_path};
pub use asked_mailbox::{AskedMailbox, AskedSlot, slot_to_ask};
pub use bounce_verdict::{Bounce, BounceAddress, BounceTag, RecipientReport, StatusCode, is_mailbox_rejection};
pub use draft::{Draft, DraftFields};
pub use forecast::LetterForecast;
pub use image::{ImageFormat, ImageName, LetterImage};
pub use letter::{
    CONFIRMATION_PATH, ConfirmationToken, Letter, LetterCounts, LetterRun, LinkState, RandomToken, RecipientState,
    TEST_COPY_TOKEN, UNSUBSCRIBE_PATH, UnsubscribeKind, UnsubscribeToken,
};
pub use list_id::ListId;
pub use recipient_list::{LetterReference, RecipientFilter};

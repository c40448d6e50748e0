//! Letters, their recipients, opt-ins with their confirmation, unsubscribing, and bounces.

mod bounces;
mod claims;
mod confirmation_mails;
mod confirmations;
mod recipients;
mod unsubscribe;

pub use bounces::RecordedBounce;
pub use claims::{ClaimedRecipient, LetterClaim, LetterOutcome};
pub use confirmation_mails::{ConfirmationLease, LeasedConfirmation};
pub use confirmations::OptInCounts;
pub(in crate::store) use confirmations::{INSERT_CONSENTS, consent_row};
pub use recipients::{RecipientsPage, StartedLetter};
pub use unsubscribe::Recipient;

//! Letters, their recipients, opt-ins with their confirmation, unsubscribing, and bounces.

mod archive;
mod bounces;
mod claims;
mod confirmation_mails;
mod confirmations;
mod drafts;
mod forecast;
mod recipient_list;
mod recipients;
mod runs;
mod stored_letter;
mod suppressions;
mod unsubscribe;

pub use bounces::RecordedBounce;
pub use claims::{ClaimTerms, ClaimedRecipient, LetterClaim, LetterOutcome, Recipient};
pub use confirmation_mails::{ConfirmationLease, LeasedConfirmation};
pub use confirmations::OptInCounts;
pub(in crate::store) use confirmations::{INSERT_CONSENTS, consent_row, wordings_batch};
pub use recipient_list::ListedRecipient;
pub(in crate::store) use recipients::CountChange;
pub use recipients::{RecipientsPage, StartedLetter};

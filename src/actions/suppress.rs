//! Suppresses an address, or lifts a suppression.
//!
//! A suppressed address is never mailed, whatever opt-in it has or gets. It is stored as a keyed hash, so it outlives
//! the erasure of the person. Besides these commands, "this was not me" ([`unsubscribe`](fn@super::unsubscribe)) and a
//! mailbox that does not exist ([`LetterSender`](super::LetterSender), [`record_bounce`](fn@super::record_bounce))
//! suppress; only [`unsuppress`], which no request can call, lifts it.

use super::Failure;
use crate::domain::email::EmailAddress;
use crate::domain::suppression::SuppressionReason;
use crate::domain::time::Timestamp;
use crate::store::Store;

/// Suppresses an address, known or not. An earlier suppression keeps its reason.
pub async fn suppress(
    store: &Store,
    email: &EmailAddress,
    reason: SuppressionReason,
    at: Timestamp,
) -> Result<(), Failure> {
    Ok(store.suppress(email, reason, at).await?)
}

/// Lifts the suppression and returns `false` if there was none. It does not opt the person in.
pub async fn unsuppress(store: &Store, email: &EmailAddress) -> Result<bool, Failure> {
    Ok(store.unsuppress(email).await?)
}

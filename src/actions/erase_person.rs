//! A person is erased, and new again from then on.

use super::Failure;
use crate::domain::email::EmailAddress;
use crate::domain::time::Timestamp;
use crate::store::{Erased, ScrubOutcome, Store};

/// Removes every trace of an address. Two things are kept, as hashes that only this database can make:
/// that it is never to be mailed, and that it had the letter of the month that runs.
///
/// A message that is being mailed to the makers at this moment arrives; it is not mailed again.
///
/// # Errors
/// `Unavailable` when the database is: then nothing was erased.
pub async fn erase_person(
    store: &Store,
    email: &EmailAddress,
    at: Timestamp,
) -> Result<(Erased, ScrubOutcome), Failure> {
    let erased = store.erase(email, at).await?;
    Ok((erased, store.scrub_deleted(email).await))
}

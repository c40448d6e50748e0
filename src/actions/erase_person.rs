//! Erases a person. A later signup of the same address is that of a new person.

use super::Failure;
use crate::domain::email::EmailAddress;
use crate::domain::time::Timestamp;
use crate::store::{Erased, ScrubOutcome, Store};

/// Deletes everything stored about an address ([`Store::erase`]), and then what is left of it in the database files
/// ([`Store::scrub_deleted`]), in steps that delay no request.
///
/// Two things are kept, as keyed hashes that only this database can compute: an existing suppression, so that the
/// address is still never mailed, and the letter of the current month, so that it gets no second one. Counts are kept,
/// too: they contain no personal data.
///
/// A contact message that is being forwarded at this moment arrives, and is not forwarded again.
pub async fn erase_person(
    store: &Store,
    email: &EmailAddress,
    at: Timestamp,
) -> Result<(Erased, ScrubOutcome), Failure> {
    let erased = store.erase(email, at).await?;
    let scrubbed = store.scrub_deleted(email, &erased.spellings).await;
    Ok((erased, scrubbed))
}

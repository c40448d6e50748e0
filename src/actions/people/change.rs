//! Suppresses, unsuppresses and erases a person.

use crate::domain::mail::EmailAddress;
use crate::domain::people::SuppressionReason;
use crate::domain::time::Timestamp;
use crate::store::{Store, StoreFailure};

/// What an erasure does not reach.
pub const LEFT_ELSEWHERE: &str =
    "Backups (continuous ones, too), exported lists and messages in your mailbox are not changed.";

/// Suppresses an address with its mailbox, known or not: no mail, even if it opts in.
pub async fn suppress_person(store: &Store, email: &EmailAddress, now: Timestamp) -> Result<(), StoreFailure> {
    store.suppress(email, SuppressionReason::Makers, now).await
}

/// Allows mail to an address and its mailbox again. Returns what follows from it, as sentences, or `None` if it was not suppressed.
pub async fn unsuppress_person(store: &Store, email: &EmailAddress) -> Result<Option<String>, StoreFailure> {
    if !store.unsuppress(email).await? {
        return Ok(None);
    }
    let opted_in = store.person_record(email).await?.is_opted_in();
    let outcome = if opted_in {
        "It is opted in, so it gets the monthly letter."
    } else {
        "It gets no letter until its owner opts in."
    };
    Ok(Some(format!("{} is no longer suppressed. {outcome}", email.as_typed())))
}

/// What an erasure did, as sentences.
#[derive(Clone, Debug)]
pub struct ErasedPerson {
    pub done: Vec<String>,
    /// What the database files may still hold.
    pub left: Vec<&'static str>,
}

/// Erases what is stored about an address, in steps. If it is interrupted, a repetition erases the rest. Keyed hashes are kept:
/// `store/people/erasure.rs` says which.
pub async fn erase_person(store: &Store, email: &EmailAddress, now: Timestamp) -> Result<ErasedPerson, StoreFailure> {
    let erased = store.erase(email, now).await?;
    let kept = store.person_record(email).await?;
    let (signups, consents, messages, letters) = (erased.signups, erased.consents, erased.messages, erased.letters);
    let typed = email.as_typed();
    let kept = [
        (kept.suppression.is_some(), "Kept as a hash: the address is suppressed."),
        (!kept.months.is_empty(), "Kept as a hash: the address got this month's letter."),
        (kept.asked_at.is_some(), "Kept as a hash for 30 days: the address was asked to confirm an opt-in."),
    ];
    let kept = kept.into_iter().filter(|(is_kept, _)| *is_kept).map(|(_, sentence)| sentence.to_owned());
    let erased_rows = format!(
        "{typed} was erased (downloads and joins: {signups}, opt-ins: {consents}, messages: {messages}, letters: {letters})."
    );
    let unused = "Unused parts of the database files may hold old bytes until they are overwritten. `porchlight people erase ADDRESS \
         --vacuum` clears them, also for somebody who is erased already; signups and messages are refused meanwhile.";
    let wal = "Another process is reading the database, perhaps a backup. The file beside the database that ends in `-wal` still \
         holds what was erased, until it is overwritten or the service stops.";
    Ok(ErasedPerson {
        done: std::iter::once(erased_rows).chain(kept).collect(),
        left: std::iter::once(unused).chain(erased.is_left_in_wal.then_some(wal)).collect(),
    })
}

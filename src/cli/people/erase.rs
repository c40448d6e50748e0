//! `porchlight people erase`

use super::find_person;
use super::purge::incomplete;
use crate::actions::erase_person;
use crate::cli::{Failure, OrFail, confirm, eprint_line};
use crate::clock::Clock;
use crate::domain::email::EmailAddress;
use crate::store::{ScrubOutcome, Store};

pub(super) async fn erase(store: &Store, email: &EmailAddress, yes: bool) -> Result<(), Failure> {
    let typed = email.as_typed();
    find_person(store, email).await?;
    if !confirm(&format!("Erase everything stored about {typed}?"), yes)? {
        eprint_line("Nothing was erased.");
        return Ok(());
    }
    let erased = erase_person(store, email, Clock::System.now()).await;
    let (erased, scrubbed) = erased.or_fail(incomplete)?;
    eprint_line(&format!(
        "{typed} was erased (downloads and joins: {}, opt-ins: {}, messages: {}, letters: {}).",
        erased.events, erased.consents, erased.messages, erased.letters
    ));
    let kept = store.person_record(email).await?;
    if kept.suppression.is_some() {
        eprint_line("Kept as a hash: the address is suppressed.");
    }
    if !kept.months.is_empty() {
        eprint_line("Kept as a hash: the address got this month's letter.");
    }
    if kept.asked_at.is_some() {
        eprint_line("Kept as a hash for 30 days: the address was asked to confirm an opt-in.");
    }
    eprint_line(&scrub_report(&scrubbed));
    eprint_line("Backups, exported lists and messages in your mailbox are not changed.");
    Ok(())
}

/// Says what is left of deleted rows.
fn scrub_report(outcome: &ScrubOutcome) -> String {
    match outcome {
        ScrubOutcome::Clean => "Nothing is left in the database file and its WAL.".to_owned(),
        ScrubOutcome::LeftInWal => {
            "Another process is reading the database, perhaps a backup. The WAL (*-wal) still holds the erased data \
             until it is overwritten or the service stops."
                .to_owned()
        }
        ScrubOutcome::LeftInFile(error) => format!(
            "Older copies of the erased data may remain in unused parts of the database file: they could not be \
             overwritten ({error}). Stop the service and run `sqlite3 FILE VACUUM` to remove them."
        ),
        ScrubOutcome::Vacuumed => {
            "The tables were vacuumed. The WAL of PostgreSQL, its archives and older backups keep the erased data until \
             they are rotated."
                .to_owned()
        }
        ScrubOutcome::NotVacuumed(error) => format!(
            "The tables could not be vacuumed ({error}): PostgreSQL keeps the erased data in them until its next vacuum, \
             and in the WAL, its archives and older backups until they are rotated."
        ),
    }
}

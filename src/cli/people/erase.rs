//! `porchlight people erase`

use super::find_person;
use super::purge::incomplete;
use crate::cli::{Failure, OrFail, confirm, eprint_line};
use crate::clock::Clock;
use crate::domain::email::EmailAddress;
use crate::store::Store;

pub(super) async fn erase(store: &Store, email: &EmailAddress, vacuum: bool, yes: bool) -> Result<(), Failure> {
    let typed = email.as_typed();
    let found = find_person(store, email).await;
    if !vacuum {
        found?;
    }
    let question = if vacuum {
        format!(
            "Erase everything stored about {typed}, and rewrite the database files? The service refuses signups and messages \
             meanwhile."
        )
    } else {
        format!("Erase everything stored about {typed}?")
    };
    if !confirm(&question, yes)? {
        eprint_line("Nothing was erased.");
        return Ok(());
    }
    let erased = store.erase(email, Clock::System.now()).await;
    let erased = erased.or_fail(incomplete)?;
    eprint_line(&format!(
        "{typed} was erased (downloads and joins: {}, opt-ins: {}, messages: {}, letters: {}).",
        erased.signups, erased.consents, erased.messages, erased.letters
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
    if vacuum {
        store.vacuum().await.or_fail(|why| {
            format!(
                "The person was erased, but the database files were not rewritten: {why}. Run the command with `--vacuum` \
                 again later."
            )
        })?;
        eprint_line("The database files were rewritten, so nothing is left in them.");
    } else {
        eprint_line(
            "Unused parts of the database files may hold old bytes until they are overwritten; `--vacuum` clears them.",
        );
    }
    if erased.is_left_in_wal && !vacuum {
        eprint_line(
            "Another process is reading the database, perhaps a backup. The WAL (*-wal) still holds the erased data until \
             it is overwritten or the service stops.",
        );
    }
    eprint_line("Backups, archives of the WAL, exported lists and messages in your mailbox are not changed.");
    Ok(())
}

//! `porchlight people erase` and `porchlight people purge`

use std::fmt::Display;
use std::time::Duration;

use clap::{ArgGroup, Args};

use crate::actions::{ErasedPerson, LEFT_ELSEWHERE, erase_person, find_person};
use crate::cli::activity::record;
use crate::cli::failure::{Failure, OrFail};
use crate::cli::terminal::{confirm, eprint_line, exit_on_interrupt};
use crate::clock::Clock;
use crate::domain::desk::Change;
use crate::domain::mail::EmailAddress;
use crate::domain::text::quantity;
use crate::domain::time::Timestamp;
use crate::store::{MatchingSignups, SignupFilter, Store};

pub(super) const PURGE_EXAMPLES: &str = "\
Examples:
  porchlight people purge --source casino
  porchlight people purge --since 2026-11-15T09:00:00Z --until 2026-11-15T10:30:00Z";

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("which").required(true).multiple(true).args(["source", "since", "until"])))]
pub(in crate::cli) struct PurgeArguments {
    /// Remove signups with exactly this source; an empty one means signups without a source
    #[arg(long)]
    source: Option<String>,
    /// Remove signups at this time or later
    #[arg(long, value_name = "TIME", value_parser = start_time)]
    since: Option<Timestamp>,
    /// Remove signups before this time; a day counts to its end
    #[arg(long, value_name = "TIME", value_parser = end_time)]
    until: Option<Timestamp>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// Parses a time, or a day as its start.
pub(super) fn start_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "it is neither a day such as 2026-11-15 nor an RFC 3339 time".to_owned())
}

/// Parses a time, or a day as its end.
fn end_time(text: &str) -> Result<Timestamp, String> {
    let is_day = !text.contains(['T', 't', ' ']);
    start_time(text).map(|start| if is_day { start.after(Duration::from_hours(24)) } else { start })
}

/// The sentence about a removal that may have been partial.
fn incomplete(failure: impl Display) -> String {
    format!("Perhaps not everything was removed: {failure}. Run the same command again; it removes the rest.")
}

impl PurgeArguments {
    pub(super) async fn run(self, store: &Store) -> Result<(), Failure> {
        // What arrives after the question is not part of the answer.
        let now = Clock::System.now().after(Duration::from_millis(1));
        let until = Some(self.until.map_or(now, |until| until.min(now)));
        let filter = SignupFilter { source: self.source, since: self.since, until };
        let MatchingSignups { downloads, joins, people, removable_people } = store.matching_signups(&filter).await?;
        if downloads + joins == 0 {
            return Err(Failure::new(
                "No signup matches, so nothing was removed. `porchlight stats` shows sources and days.",
            ));
        }
        eprint_line(&format!(
            "{} and {} of {} match.",
            quantity(downloads, "download", "downloads"),
            quantity(joins, "join", "joins"),
            quantity(people, "person", "people")
        ));
        let (one, many) = ("of them has nothing else and is removed", "of them have nothing else and are removed");
        let removed = quantity(removable_people, one, many);
        eprint_line(&format!("{removed}. Statistics and suppressions stay."));
        let signups = quantity(downloads + joins, "signup", "signups");
        confirm(&format!("Remove {signups} for good?"), self.yes, "Nothing was removed.")?;
        exit_on_interrupt("Interrupted: some signups were removed. Run the command again for the rest.")?;
        let purged = store.purge_signups(&filter).await.or_fail(incomplete)?;
        record(store, Change::PurgedSignups(purged.signups)).await;
        let signups = quantity(purged.signups, "signup", "signups");
        let people = quantity(purged.people, "person was", "people were");
        eprint_line(&format!(
            "{signups} and the opt-ins that came with them were removed, and {people} removed entirely."
        ));
        Ok(())
    }
}

pub(super) async fn erase(store: &Store, email: &EmailAddress, vacuum: bool, yes: bool) -> Result<(), Failure> {
    let typed = email.as_typed();
    let found = find_person(store, email).await;
    let is_known = found.is_ok();
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
    confirm(&question, yes, "Nothing was erased.")?;
    let ErasedPerson { done, left } = erase_person(store, email, Clock::System.now()).await.or_fail(incomplete)?;
    if is_known {
        record(store, Change::ErasedPerson).await;
    }
    for sentence in &done {
        eprint_line(sentence);
    }
    if vacuum {
        store.vacuum().await.or_fail(|why| {
            format!(
                "The person was erased, but old bytes may be left in the database files: {why}. Run the command with `--vacuum` \
                 again later."
            )
        })?;
        eprint_line("The database files were rewritten, so nothing is left in them.");
    } else {
        left.into_iter().for_each(eprint_line);
    }
    eprint_line(LEFT_ELSEWHERE);
    Ok(())
}

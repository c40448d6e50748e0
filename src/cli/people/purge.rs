//! `porchlight people purge`

use std::fmt::Display;
use std::time::Duration;

use clap::{ArgGroup, Args};

use crate::cli::terminal::exit_on_interrupt;
use crate::cli::time_argument::TimeRange;
use crate::cli::{Failure, OrFail, confirm, eprint_line};
use crate::clock::Clock;
use crate::domain::plural::quantity;
use crate::store::{MatchingSignups, SignupFilter, Store};

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight people purge --source casino
  porchlight people purge --since 2026-11-15T09:00:00Z --until 2026-11-15T10:30:00Z";

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("which").required(true).multiple(true).args(["source", "since", "until"])))]
#[command(mut_arg("since", |since| since.help("Remove signups at this time or later")))]
#[command(mut_arg("until", |until| until.help("Remove signups before this time; a day counts to its end")))]
pub(in crate::cli) struct PurgeArguments {
    /// Remove signups with exactly this source; an empty one means signups without a source
    #[arg(long)]
    source: Option<String>,
    #[command(flatten)]
    range: TimeRange,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// The sentence about a removal that may have been partial.
pub(super) fn incomplete(failure: impl Display) -> String {
    format!("Perhaps not everything was removed: {failure}. Run the same command again; it removes the rest.")
}

impl PurgeArguments {
    pub(super) async fn run(self, store: &Store) -> Result<(), Failure> {
        // What arrives after the question is not part of the answer.
        let now = Clock::System.now().after(Duration::from_millis(1));
        let until = Some(self.range.until.map_or(now, |until| until.min(now)));
        let filter = SignupFilter { source: self.source, since: self.range.since, until };
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
        if !confirm(&format!("Remove {signups} for good?"), self.yes)? {
            eprint_line("Nothing was removed.");
            return Ok(());
        }
        exit_on_interrupt("Interrupted: some signups were removed. Run the command again for the rest.")?;
        let purged = store.purge_signups(&filter).await.or_fail(incomplete)?;
        let signups = quantity(purged.signups, "signup", "signups");
        let people = quantity(purged.people, "person was", "people were");
        eprint_line(&format!(
            "{signups} and the opt-ins that came with them were removed, and {people} removed entirely."
        ));
        Ok(())
    }
}

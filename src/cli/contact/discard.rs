//! `porchlight inbox discard`

use clap::Args;

use super::message::{find_all, id_or_dash, line};
use crate::actions::{Discarded, discard_messages};
use crate::cli::activity::record;
use crate::cli::failure::{Failure, OrFail};
use crate::cli::terminal::{confirm, eprint_line, terminal_width};
use crate::clock::Clock;
use crate::domain::desk::Change;
use crate::domain::text::quantity;
use crate::store::{DeliveryState, InboxEntry, Store};

pub(super) const EXAMPLES: &str = "\
Examples:
  porchlight inbox discard 5f2c9a01 77ab03c9
  porchlight inbox list --json | jq -r '.[] | select(.name == \"Casino\") | .id' |
    porchlight inbox discard - --yes";

/// How many of the messages are shown before the question.
const SHOWN: usize = 10;

#[derive(Args, Debug)]
pub(in crate::cli) struct DiscardArguments {
    /// References of messages, or full ids; - reads them from standard input
    #[arg(value_name = "ID", value_parser = id_or_dash, required = true)]
    ids: Vec<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

impl DiscardArguments {
    pub(super) async fn run(self, store: &Store) -> Result<(), Failure> {
        let now = Clock::System.now();
        let is_being_mailed = |entry: &InboxEntry| entry.is_being_sent(now);
        let (being_mailed, found): (Vec<_>, Vec<_>) =
            find_all(store, &self.ids).await?.into_iter().partition(is_being_mailed);
        if found.is_empty() {
            return Err(Failure::new(
                "There is no such message, or it is being mailed, so nothing was deleted. `porchlight inbox list` lists all \
                 messages.",
            ));
        }
        for entry in found.iter().take(SHOWN) {
            eprint_line(&line(entry, terminal_width()));
        }
        if found.len() > SHOWN {
            eprint_line(&format!("… and {} more", found.len() - SHOWN));
        }
        if !being_mailed.is_empty() {
            let (one, many) = ("message is being mailed and stays.", "messages are being mailed and stay.");
            eprint_line(&quantity(being_mailed.len() as u64, one, many));
        }
        let messages = quantity(found.len() as u64, "message", "messages");
        let unmailed = match found.iter().filter(|entry| entry.state != DeliveryState::Sent).count() {
            0 => String::new(),
            unmailed => format!(", {unmailed} of them without mailing"),
        };
        confirm(&format!("Delete {messages} for good{unmailed}?"), self.yes, "Nothing was deleted.")?;
        let ids: Vec<_> = found.iter().map(|entry| entry.received.id).collect();
        let Discarded { deleted, stayed } = discard_messages(store, &ids, now).await.or_fail(|failure| {
            format!(
                "Perhaps not all messages were deleted: {failure}. `porchlight inbox list` lists those that are left."
            )
        })?;
        if deleted > 0 {
            record(store, Change::DiscardedMessages(deleted)).await;
        }
        let discarded = Discarded { deleted, stayed: stayed + being_mailed.len() as u64 };
        if discarded.stayed > 0 {
            return Err(Failure::new(discarded.in_words()));
        }
        eprint_line(&discarded.in_words());
        Ok(())
    }
}

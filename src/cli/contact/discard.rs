//! `porchlight inbox discard`

use std::collections::BTreeSet;
use std::io::BufRead;

use clap::Args;

use super::message::{find, id, line, unknown};
use crate::cli::failure::{Failure, OrFail};
use crate::cli::terminal::{confirm, eprint_line, terminal_width};
use crate::clock::Clock;
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

fn id_or_dash(text: &str) -> Result<String, String> {
    if text == "-" { Ok(text.to_owned()) } else { id(text) }
}

impl DiscardArguments {
    pub(super) async fn run(self, store: &Store) -> Result<(), Failure> {
        let now = Clock::System.now();
        let is_being_mailed = |entry: &InboxEntry| entry.is_being_sent(now);
        let (being_mailed, found): (Vec<_>, Vec<_>) =
            self.find_all(store).await?.into_iter().partition(is_being_mailed);
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
        let count = found.len() as u64;
        let messages = quantity(count, "message", "messages");
        let unmailed = match found.iter().filter(|entry| entry.state != DeliveryState::Sent).count() {
            0 => String::new(),
            unmailed => format!(", {unmailed} of them without mailing"),
        };
        confirm(&format!("Delete {messages} for good{unmailed}?"), self.yes, "Nothing was deleted.")?;
        let ids: Vec<_> = found.iter().map(|entry| entry.received.id).collect();
        let discarded = store.discard_messages(&ids, now).await.or_fail(|failure| {
            format!(
                "Perhaps not all messages were deleted: {failure}. `porchlight inbox list` lists those that are left."
            )
        })?;
        let messages = quantity(discarded, "message was deleted.", "messages were deleted.");
        let staying = count - discarded + being_mailed.len() as u64;
        if staying > 0 {
            let (one, many) = ("message is being mailed and stayed", "messages are being mailed and stayed");
            let staying = quantity(staying, one, many);
            return Err(Failure::new(format!("{messages} {staying}. Discard them again in a minute.")));
        }
        eprint_line(&messages);
        Ok(())
    }

    /// Finds the messages. An unknown id is an error, so that nothing else is deleted by mistake.
    async fn find_all(&self, store: &Store) -> Result<Vec<InboxEntry>, Failure> {
        let mut ids = BTreeSet::new();
        for given in &self.ids {
            if given != "-" {
                ids.insert(given.clone());
                continue;
            }
            for line in std::io::stdin().lock().lines() {
                let line = line?;
                let given = line.trim();
                if !given.is_empty() {
                    ids.insert(id(given).map_err(|_| unknown(given))?);
                }
            }
        }
        let mut found = Vec::new();
        for id in ids {
            found.push(find(store, &id).await?);
        }
        Ok(found)
    }
}
